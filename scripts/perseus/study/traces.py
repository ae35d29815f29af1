"""Define a trace (recorded arrivals) in a configuration: a file, and the rows that Perseus uses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from perseus.study.base import Part, Text, Whole

FileName = Annotated[Text, Field(min_length=1)]


class TraceSource(Part):
    """A trace file, its column with the times, the unit of the times, and a filter of its rows."""

    file: FileName = Field(
        description=(
            "The path of the trace file: a Parquet file, a CSV file, JSON lines, or the access log"
            " of a web server. All formats except Parquet may be compressed (.gz). Perseus"
            " recognises the public traces of Azure Functions, Azure LLM inference, Alibaba Bailian"
            " (Qwen), BurstGPT and Mooncake, and traces of AIPerf."
        ),
        examples=["arrivals.csv"],
    )
    column: FileName | None = Field(
        default=None,
        description=(
            "The column with the times. If you leave this key out, Perseus takes the only column of"
            " the file; otherwise, the only column with a usual name for times; otherwise, the only"
            " column with dates or times since 1970. In all other cases, you must name the column."
        ),
    )
    unit: Literal["s", "ms", "us", "ns"] | None = Field(
        default=None,
        description=(
            "The unit of the times, if they are numbers. Perseus recognises the unit of times since"
            " 1970 by the size of the numbers. For smaller numbers, the default is the unit in the"
            " name of the column, such as ms in arrival_ms. If the name has no unit, the default is"
            " the unit of the file format, or s for an unknown format. If Perseus needs the"
            " unit but doubts the default, it stops and asks you for the unit."
        ),
    )
    where: dict[Text, Annotated[Text | Whole, Field(description="text or a whole number")]] = Field(
        default={},
        description=(
            "Selects rows of the file: `{Model: GPT-4}` selects the rows with the value GPT-4 in"
            " the column Model. Default: all rows."
        ),
    )

    def __str__(self) -> str:
        """Return the path of the file, and its row filter in brackets, for messages."""
        values = ", ".join(f"{name} {value}" for name, value in self.where.items())
        return f"{self.file} ({values})" if values else self.file


def _as_source(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


TraceOf = Annotated[
    TraceSource,
    BeforeValidator(_as_source, json_schema_input_type=FileName | TraceSource),
    Field(description="a file, or a mapping with `file:`, `column:`, `unit:` and `where:`"),
]
"""Type of a trace in a configuration: the path of the file, or a mapping with the key `file`."""
