"""A vocabulary as a person types it. Knows nothing of torch, so that options are read without it."""


def typed_vocabulary(written: str) -> list[str | int] | None:
    """Read a vocabulary; None where it has an empty word.

    `abcd` is four characters, `1,2,3` whole numbers, `red,green` words.
    """
    if "," not in written or written == ",":
        return list(written)
    words = [word.strip() for word in written.split(",")]
    if not all(words):
        return None
    return [int(word) if word.removeprefix("-").isdecimal() else word for word in words]
