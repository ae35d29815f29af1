"""Define `Part`, the base class of the sections of a configuration and of the settings of jobs."""

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
    """Base class of the sections of a configuration and of the settings of jobs. Objects are
    immutable.

    The constructor rejects unknown keys and values of a wrong type.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def plain(self) -> dict[str, Any]:
        """Return the object as plain data: dictionaries (with sorted keys), lists, strings and
        numbers.

        Snakemake repeats a job if the `repr` of its settings has changed since the last run.
        Because the keys are sorted, equal objects have the same `repr`.
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
"""Type of a finite number, with or without a decimal point."""

Whole = Annotated[int, Strict()]

Different = AfterValidator(_different)
"""Validator of a list: it rejects duplicate items."""

# In regular expressions of pydantic, '$' does not match before a line break at the end.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
Name = Annotated[StrictStr, Field(pattern=NAME)]
"""Type of a name that is valid in paths, URLs and Snakemake wildcards."""
