"""The base of every configuration: frozen, complete, comparable; an unknown key is refused with the near name."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from headstock.errors import UserError, near_name


class Settings(BaseModel):
    """A configuration as a value: hashable, equal when its fields are, never changed after it is made.

    Raises UserError, in one sentence, for an unknown key or a value outside its range.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise UserError(self._sentence(error)) from None

    @classmethod
    def _sentence(cls, error: ValidationError) -> str:
        """Say the first thing that is wrong; the others are met once it is mended."""
        # A misspelt key comes first: it may be the very one that is missing.
        first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            return f"{cls.__name__} has no key {key!r}: {near_name(key, cls.model_fields)}"
        if first["type"] == "missing":
            return f"{cls.__name__} needs {key!r}: give it a value."
        if first["type"] == "value_error":
            return str(first["ctx"]["error"])
        said = first["msg"].removeprefix("Input should be ")
        return f"{key}={first['input']!r} cannot be used: it should be {said}."
