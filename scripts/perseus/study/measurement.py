"""Define the settings of the measurement: evidence, arrivals and client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from perseus.study.base import Flag, Part, Real, Whole
from perseus.study.presets import PRESETS
from perseus.study.traces import TraceOf

if TYPE_CHECKING:
    PresetName = str
else:
    PresetName = Literal[tuple(PRESETS)]


class ArrivalProcess(Part):
    """The arrival process of the requests."""

    process: Literal["poisson", "constant", "gamma", "trace"] = Field(
        default="poisson",
        description=(
            "The arrival process of the open loop. With `constant` (equal gaps), fewer requests"
            " wait in the queue than with real arrivals; use `constant` for comparisons only."
        ),
    )
    trace: TraceOf | None = Field(
        default=None,
        description=(
            "A file of recorded arrivals, or a mapping that selects a part of the file; only for"
            " process `trace`. Perseus scales the recorded gaps to each offered rate. Each window"
            " begins at a random time of the trace. At the end of the trace, the window continues"
            " with the beginning of the trace."
        ),
    )
    cv: Annotated[Real, Field(gt=0, le=20)] | None = Field(
        default=None,
        description=(
            "Coefficient of variation of the gaps between arrivals; only for process `gamma`."
            " Default: 1."
        ),
    )


class ClientSettings(Part):
    """Protocol, shared memory and processes of the client."""

    protocol: Literal["grpc", "http"] = Field(
        default="grpc", description="The protocol of the requests."
    )
    shared_memory: Flag = Field(
        default=False,
        description=(
            "With `true`, the client puts the inputs into system shared memory, not into each"
            " request. The server must be on the same host."
        ),
    )
    processes: Literal["auto"] | Annotated[Whole, Field(ge=1, le=256)] = Field(
        default="auto",
        description=(
            "Number of client processes of each tenant, which share the requests of the tenant."
            " `auto` is the number of client cores divided by the number of tenants, at least one."
        ),
    )


class Measurement(Part):
    """The amount of evidence that the study collects, the arrivals and the client."""

    preset: PresetName = Field(
        default="quick",
        description="Amount of evidence: confidence of verdicts, lengths of windows, number of"
        " repeats (docs/explanation/search.md).",
    )
    repeats: Annotated[Whole, Field(ge=1, le=100)] | None = Field(
        default=None,
        description=(
            "Number of independent repeats, each with a restarted server. Default: the number of"
            " the preset."
        ),
    )
    ratio_within: Annotated[Real, Field(ge=0.01, le=0.5)] | None = Field(
        default=None,
        description=(
            "Precision of a sharing ratio that is enough: half of the width of its 95 % interval."
            " A cell of several tenants saturates the server in rounds, and ends these rounds early"
            " at this precision. Default: the value of the preset"
            " (docs/explanation/sharing-ratio.md)."
        ),
    )
    arrivals: ArrivalProcess = Field(
        default=ArrivalProcess(), description="The arrival process of the requests."
    )
    client: ClientSettings = Field(
        default=ClientSettings(), description="Protocol, shared memory and processes of the client."
    )
