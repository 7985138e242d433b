"""The smallest form: a machine or a look-up of endings, and for a model that sees ahead a look-up of sequences."""

from collections.abc import Sequence

from headstock.model.transformer import Transformer
from headstock.programs.back_to_code.domain import AT_MOST, Overflow, Token, domain_of
from headstock.programs.back_to_code.function import Function, function_of, refuse_looking_ahead
from headstock.programs.back_to_code.lookups import Lookup, lookup_of
from headstock.programs.back_to_code.machines import Machine, machine_of
from headstock.programs.back_to_code.reading import Ties, read
from headstock.programs.back_to_code.whole import WholeLookup, whole_lookup


def extract(
    model: Transformer | Function,
    *,
    alphabet: Sequence[Token] | None = None,
    names: Sequence[str] | None = None,
    start: Token | None = None,
    longest: int | None = None,
    overflow: Overflow = "refuse",
    ties: Ties = "refuse",
    at_most: int = AT_MOST,
) -> Machine | Lookup | WholeLookup:
    """Give whichever of the smallest machine and the smallest look-up has fewer states or rows; the machine if equal.

    Both foretell, on the whole domain, the token that the model holds likeliest; both are checked against it. A model
    with causal=false gives a `whole_lookup`. The choices are those of `machine`.

        >>> form = extract(model, names="ab")     # (aab)* by hand
        >>> form.kind, form.size, form.verified
        ('machine', 3, 62)
        >>> pathlib.Path("aab.c").write_text(form.c())

    Raises UserError as `machine` does.
    """
    function = function_of(model)
    if not function.causal and overflow == "refuse":
        return whole_lookup(
            function, alphabet=alphabet, names=names, start=start, longest=longest, ties=ties, at_most=at_most
        )
    refuse_looking_ahead(function)
    domain = domain_of(
        function, alphabet=alphabet, names=names, start=start, longest=longest, overflow=overflow, at_most=at_most
    )
    told = read(function, domain, ties)
    read_on, looked_up = machine_of(domain, told), lookup_of(domain, told)
    return read_on if read_on.size <= looked_up.size else looked_up
