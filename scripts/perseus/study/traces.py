"""Define a trace in a configuration: a file, and the selected part of the file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from perseus.study.base import Part, Text, Whole

FileName = Annotated[Text, Field(min_length=1)]


class TraceSource(Part):
    """The file of a trace, and a filter of its rows."""

    file: FileName = Field(
        description=(
            "The path of a file: CSV, JSON lines, Parquet, or the access log of a web server; .gz"
            " may follow. Perseus recognises the public traces of Azure Functions, Azure LLM"
            " inference, BurstGPT and Mooncake."
        ),
        examples=["arrivals.csv"],
    )
    column: FileName | None = Field(
        default=None,
        description=(
            "The column of the times. Default: the only column, the column with a usual name for"
            " times, or the column with dates or times since 1970. If several columns fit, you must"
            " name the column."
        ),
    )
    unit: Literal["s", "ms", "us", "ns"] | None = Field(
        default=None,
        description=(
            "The unit of times that are numbers. Default: the unit in which the numbers are times"
            " since 1970, or the unit in the name of the column, or the unit of the file format;"
            " otherwise s. If the unit is ambiguous, you must name it."
        ),
    )
    where: dict[Text, Annotated[Text | Whole, Field(description="text or a whole number")]] = Field(
        default={},
        description=(
            "A filter: Perseus uses only the rows with these values in these columns, such as"
            " `{Model: GPT-4}`."
        ),
    )

    def __str__(self) -> str:
        """Return the path of the file and the filter of its rows, as text."""
        values = ", ".join(f"{name} {value}" for name, value in self.where.items())
        return f"{self.file} ({values})" if values else self.file


def _as_source(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


TraceOf = Annotated[
    TraceSource,
    BeforeValidator(_as_source, json_schema_input_type=FileName | TraceSource),
    Field(description="a file, or a mapping with `file:`, `column:`, `unit:` and `where:`"),
]
"""Type of a trace in a configuration: a mapping, or only the path of the file."""
