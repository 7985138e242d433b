"""The shapes that signatures in `model` speak of; tests check them at run time, where jaxtyping is installed.

Letters, here and after a name (`scores_bhqk`), are axes: b batch, h head, q query position, k key position,
d width of a head, m model width, v vocabulary. A leading `#` means that the axis may be 1 and broadcast.
"""

from typing import TYPE_CHECKING, TypeAlias

from torch import Tensor

if TYPE_CHECKING:
    Ids: TypeAlias = Tensor
    Continued: TypeAlias = Tensor
    Residual: TypeAlias = Tensor
    Logits: TypeAlias = Tensor
    Queries: TypeAlias = Tensor
    Keys: TypeAlias = Tensor
    KeysPerQueryHead: TypeAlias = Tensor
    Values: TypeAlias = Tensor
    Mixed: TypeAlias = Tensor
    Scores: TypeAlias = Tensor
    Weights: TypeAlias = Tensor
    VisibleTensor: TypeAlias = Tensor
else:
    try:
        from jaxtyping import Bool, Float, Int
    except ImportError:  # a plain installation: shapes stay documentation
        Ids = Continued = Residual = Logits = Queries = Keys = KeysPerQueryHead = Values = Mixed = Tensor
        Scores = Weights = VisibleTensor = Tensor
    else:
        Ids = Int[Tensor, "b q"]
        Continued = Int[Tensor, "b longer"]
        Residual = Float[Tensor, "b q m"]
        Logits = Float[Tensor, "b q v"]
        Queries = Float[Tensor, "b h q d"]
        Keys = Float[Tensor, "b h_k k d"]
        KeysPerQueryHead = Float[Tensor, "b h k d"]
        Values = Float[Tensor, "b h_v k d_v"]
        Mixed = Float[Tensor, "b h_out q d_v"]
        Scores = Float[Tensor, "b h q k"]
        Weights = Float[Tensor, "b h_out q k"]
        VisibleTensor = Bool[Tensor, "#b #h q k"]
