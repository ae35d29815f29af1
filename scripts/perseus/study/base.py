"""Define the base class of all parts of the definition of a study and of its tasks."""

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
    """An immutable part of the definition of a study, or of a task.

    Validation rejects unknown keys and values of a wrong type.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def plain(self) -> dict[str, Any]:
        """Return the part in plain form: dictionaries with sorted keys, lists, strings and numbers.

        Pydantic can validate the plain form again.

        Snakemake compares the `repr` of this form between runs. Because of the sorted keys, equal
        parts have the same `repr`.
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
"""Type of a number; 100 and 100.0 are equal values."""

Whole = Annotated[int, Strict()]

Different = AfterValidator(_different)
"""Type of a list without duplicate items."""

# In regular expressions of pydantic, '$' does not match before a line break at the end.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
Name = Annotated[StrictStr, Field(pattern=NAME)]
"""Type of a name that folders, URLs and Snakemake wildcards can contain."""
