"""`headstock check`: does a mixer keep every law that mixers are held to?"""

from typing import Annotated

from cyclopts import Parameter

from headstock.cli.layout import print_json, results_alone, width
from headstock.cli.options import AsJson, Flag, refuse_settings_among
from headstock.cli.progress import CheckProgress


def check(
    mixer: Annotated[
        str,
        Parameter(help="MIXER[+POSITION][,key=value...]; MIXER may be FILE.py:CLASS or PACKAGE.MODULE:CLASS."),
    ],
    /,
    *,
    only: Annotated[
        list[str] | None,
        Parameter(negative="", help="One check by its name; give it again for another [default: all]."),
    ] = None,
    full: Annotated[
        bool, Flag, Parameter(help="Compile too, which takes a minute, and run what takes seconds at every position.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Run the conformance suite on a mixer: causality, evaluations, masks, claims, numbers, formulas, keeping.

    Without +POSITION every position that the mixer allows is tried. Exit status 1 says that a check failed.
    """
    from headstock.conformance.suite import check_mixer

    refuse_settings_among([mixer])
    with results_alone(), CheckProgress() as progress:
        report = check_mixer(mixer, only=only, full=full, on_outcome=progress)
    if as_json:
        print_json(report.to_dict())
    else:
        print(report.table(width()))
    return 0 if report.passed else 1
