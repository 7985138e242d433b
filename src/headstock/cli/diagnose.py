"""`headstock doctor`: is this machine to be believed?"""

import sys
from typing import TYPE_CHECKING

from headstock.cli.layout import filled, print_json
from headstock.cli.options import AsJson

if TYPE_CHECKING:
    from headstock.comparison.doctor import Check

NAME_WIDTH = 36


def doctor(*, as_json: AsJson = False) -> int:
    """Check this machine and the package on it, before a comparison is believed.

    Own attention is held against torch's, every mixer's fast evaluation against its plain one, a GPU against the CPU,
    and two runs of a seed against each other; then disk and data. Exit status 1 says that a check failed.
    """
    from headstock.comparison.doctor import examine

    checks = examine(None if as_json else _print)
    failed = [check for check in checks if check.status == "fail"]
    if as_json:
        print_json([check.to_dict() for check in checks])
    if failed:
        print(f"headstock: {len(failed)} of {len(checks)} checks failed.", file=sys.stderr)
    return 1 if failed else 0


def _print(check: "Check") -> None:
    before = f"{check.status:<4}  {check.name:<{NAME_WIDTH}}"
    print(filled(check.found, before, " " * len(before)), flush=True)
