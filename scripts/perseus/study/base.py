"""The base class of all parts of a study's definition and of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    StrictBool,
    StrictStr,
)
from pydantic_core import PydanticCustomError


class Part(BaseModel):
    """An immutable part of a definition or of a task.

    It refuses unknown keys and values of another type.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def plain(self) -> dict[str, Any]:
        """Return dictionaries with sorted keys, lists, strings and numbers, which can be validated
        again.

        Equal parts have the same `repr` in this form, which Snakemake compares.
        """
        return _sorted(self.model_dump(mode="json"))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _different(values: Sequence[Any]) -> Sequence[Any]:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise PydanticCustomError("twice", "has {value} twice", {"value": repr(value)})
    return values


Text = StrictStr
Flag = StrictBool
Real = Annotated[float, Strict(), Field(allow_inf_nan=False)]
"""A number; 100 and 100.0 are the same."""

Whole = Annotated[int, Strict()]

Different = AfterValidator(_different)
"""A list of different items."""

# In pydantic's regular expressions, '$' is the very end: a line break may not follow.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
Name = Annotated[StrictStr, Field(pattern=NAME)]
"""A name for folders, URLs and wildcards."""
