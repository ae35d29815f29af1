"""Define a trace in a configuration: a file, and the selected part of the file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from perseus.study.base import Part, Text, Whole

FileName = Annotated[Text, Field(min_length=1)]


class TraceSource(Part):
    """The file of a trace, and the rows that count."""

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
            "The column of the times. Default: the only column, a column with a usual name for"
            " times, or a column with dates or times since 1970."
        ),
    )
    unit: Literal["s", "ms", "us", "ns"] | None = Field(
        default=None,
        description=(
            "The unit of times that are numbers. Default: the unit of the file format, of the name"
            " of the column or of times since 1970, or else s. If the unit is ambiguous, you must"
            " give it."
        ),
    )
    where: dict[Text, Annotated[Text | Whole, Field(description="text or a whole number")]] = Field(
        default={},
        description=(
            "A filter: only rows with these values in these columns count, such as"
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
    Field(description="a file, or a mapping with file:, column:, unit: and where:"),
]
"""Type of a trace in a configuration; the path of the file alone is also valid."""
