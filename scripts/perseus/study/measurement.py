"""Define the settings of the measurement: amount of evidence, arrival process and client."""

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
            "The arrival process of the open loop. Use `constant` (equal gaps) for comparisons"
            " only: fewer requests wait in the queue than with real arrivals."
        ),
    )
    trace: TraceOf | None = Field(
        default=None,
        description=(
            "A file of recorded arrivals, or a mapping that selects a part of the file; only for"
            " process `trace`. Perseus scales the recorded gaps between requests to each offered"
            " rate. Each window replays the trace from a random time on. At the end of the trace,"
            " the window continues at the start of the trace."
        ),
    )
    cv: Annotated[Real, Field(ge=0.01, le=20)] | None = Field(
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
            "With `true`, the client passes the inputs to the server in shared memory, not in each"
            " request. Only the launchers `embedded` and `apptainer` give the server access to this"
            " memory."
        ),
    )
    processes: Literal["auto"] | Annotated[Whole, Field(ge=1, le=256)] = Field(
        default="auto",
        description=(
            "Number of client processes of each tenant. These processes share the requests of the"
            " tenant. `auto`: the number of client cores divided by the number of tenants, rounded"
            " down, but at least one."
        ),
    )


class Measurement(Part):
    """The amount of evidence that the study collects, the arrival process and the client."""

    preset: PresetName = Field(
        default="quick",
        description="Amount of evidence: confidence of verdicts, lengths of windows, number of"
        " repeats (docs/explanation/search.md).",
    )
    repeats: Annotated[Whole, Field(ge=1, le=100)] | None = Field(
        default=None,
        description=(
            "Number of independent repeats of each load line or experiment, each on a restarted"
            " server. Default: the number of repeats of the preset."
        ),
    )
    ratio_within: Annotated[Real, Field(ge=0.01, le=0.5)] | None = Field(
        default=None,
        description=(
            "Wanted half-width of the 95 % interval of a sharing ratio. In a cell with several"
            " tenants, Perseus saturates the server in rounds. The rounds end when the half-width"
            " for the sharing ratio at saturation is below 0.3 x `ratio_within`, or after the"
            " number of rounds of the preset. Default: the value of the preset"
            " (docs/explanation/sharing-ratio.md)."
        ),
    )
    arrivals: ArrivalProcess = Field(
        default=ArrivalProcess(), description="The arrival process of the requests."
    )
    client: ClientSettings = Field(
        default=ClientSettings(), description="Protocol, shared memory and processes of the client."
    )
