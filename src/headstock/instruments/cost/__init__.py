"""What one block costs as the sequence grows: seconds and bytes of the whole block and of each of its parts.

`cost_by_length` measures; `expected_bytes` says by formula what has to be held; `longest_that_fits` says which length
a memory has room for. All that is compared is measured in turns within one program, so that whatever else the machine
does falls on all alike. Knows nothing of how models are made equal: it is handed configs.
"""

from headstock.instruments.cost.expected import expected_bytes
from headstock.instruments.cost.fits import Fits, longest_that_fits
from headstock.instruments.cost.measuring import cost_by_length
from headstock.instruments.cost.result import (
    PARTS,
    PASSES,
    Cost,
    Growth,
    Measured,
    Part,
    Pass,
    Quantity,
    Ratio,
    Variant,
)

__all__ = [
    "PARTS",
    "PASSES",
    "Cost",
    "Fits",
    "Growth",
    "Measured",
    "Part",
    "Pass",
    "Quantity",
    "Ratio",
    "Variant",
    "cost_by_length",
    "expected_bytes",
    "longest_that_fits",
]
