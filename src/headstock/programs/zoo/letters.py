"""The tokens that most programs of the zoo are compiled for where nobody says others."""

from headstock.errors import UserError

LETTERS = "abcd"


def one_token(token: str) -> str:
    """Give a token back; raises UserError where it is no single character."""
    if len(token) != 1:
        raise UserError(f"the token is {token!r}: give one character, such as 'a'.")
    return token


def letters_with(token: str) -> tuple[str, ...]:
    """Give the usual letters, and those of `token` that are not among them."""
    return tuple(dict.fromkeys(LETTERS + token))
