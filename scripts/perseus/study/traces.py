"""A trace in a configuration: a file, and the selected part of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from perseus.study.base import Part, Text, Whole

FileName = Annotated[Text, Field(min_length=1)]


class TraceSource(Part):
    """The file of a trace, and the selected rows."""

    file: FileName = Field(
        description="CSV, JSON lines, Parquet, or a web server's access log; .gz may follow. The"
        " public traces of Azure Functions, Azure LLM inference, BurstGPT and Mooncake are"
        " recognised.",
        examples=["arrivals.csv"],
    )
    column: FileName | None = Field(
        default=None,
        description="The column of the times. Default, the only one, the one with such a name, or"
        " the one with dates or times since 1970.",
    )
    unit: Literal["s", "ms", "us", "ns"] | None = Field(
        default=None,
        description="The unit of times that are numbers. Default, the one of the format, of the"
        " column's name or of times since 1970, or s; it must be given if it may be another one.",
    )
    where: dict[Text, Annotated[Text | Whole, Field(description="text or a whole number")]] = Field(
        default={},
        description="Only rows with these values in these columns count, such as `{Model: GPT-4}`.",
    )

    def __str__(self) -> str:
        """Return the file, and the rows of it that count."""
        values = ", ".join(f"{name} {value}" for name, value in self.where.items())
        return f"{self.file} ({values})" if values else self.file


def _as_source(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


TraceOf = Annotated[
    TraceSource,
    BeforeValidator(_as_source, json_schema_input_type=FileName | TraceSource),
    Field(description="a file, or a mapping with file:, column:, unit: and where:"),
]
"""A trace may also be the name of its file alone."""
