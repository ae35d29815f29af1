"""Define the section `measurement` of a configuration: how much evidence Perseus collects, the
arrival process, and the client."""

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
    """The arrival process: the random process that draws the send times of the requests."""

    process: Literal["poisson", "constant", "gamma", "trace"] = Field(
        default="poisson",
        description=(
            "The process that determines the send times of the requests: `poisson`, `gamma`"
            " (gamma-distributed gaps), `trace` (recorded arrivals) or `constant` (equal gaps). Use"
            " `constant` only for comparisons, because fewer requests wait in the queue than with"
            " real arrivals."
        ),
    )
    trace: TraceOf | None = Field(
        default=None,
        description=(
            "A file of recorded arrivals, or a mapping that selects a part of the file; only for"
            " process `trace`. To reach an offered rate, Perseus multiplies all recorded gaps"
            " between requests by the same factor. Each window starts at a random position in the"
            " trace. If a window reaches the end of the trace, it continues at the beginning."
        ),
    )
    cv: Annotated[Real, Field(ge=0.01, le=20)] | None = Field(
        default=None,
        description=(
            "Coefficient of variation (standard deviation divided by mean) of the gaps between"
            " arrivals; only for process `gamma`. Default: 1, as for `poisson`."
        ),
    )


class ClientSettings(Part):
    """Protocol, shared memory and processes of the client."""

    protocol: Literal["grpc", "http"] = Field(
        default="grpc", description="The protocol with which the client sends requests."
    )
    shared_memory: Flag = Field(
        default=False,
        description=(
            "If true, the client passes the inputs to the server in shared memory, not in each"
            " request. Shared memory needs a server with the launcher `embedded` or `apptainer`,"
            " because other servers cannot access the memory of the client."
        ),
    )
    processes: Literal["auto"] | Annotated[Whole, Field(ge=1, le=256)] = Field(
        default="auto",
        description=(
            "Number of processes that send the requests of one tenant. `auto`: the number of client"
            " cores divided by the number of tenants, rounded down, but at least one."
        ),
    )


class Measurement(Part):
    """How much evidence the study collects, the arrival process, and the client."""

    preset: PresetName = Field(
        default="quick",
        description=(
            "How much evidence Perseus collects: the confidence of each verdict (pass or fail), the"
            " lengths of the windows, and the number of repeats (docs/explanation/search.md)."
            " `smoke` only tests whether Perseus works."
        ),
    )
    repeats: Annotated[Whole, Field(ge=1, le=100)] | None = Field(
        default=None,
        description=(
            "How many times Perseus measures each load line or experiment, each time on a restarted"
            " server and with new random send times. Default: the number of repeats of the preset."
        ),
    )
    ratio_within: Annotated[Real, Field(ge=0.01, le=0.5)] | None = Field(
        default=None,
        description=(
            "The half-width that the 95 % interval of a sharing ratio should have: a smaller number"
            " makes the ratio more precise and the measurement longer. To measure the sharing ratio"
            " of a busy server, Perseus repeats rounds. In a round, Perseus saturates the server"
            " with each tenant alone and with all tenants together. Perseus ends the rounds when"
            " the half-width of this ratio is below 0.3 x `ratio_within`, at the latest after"
            " the number of rounds of the preset. Default: the value of the preset"
            " (docs/explanation/sharing-ratio.md)."
        ),
    )
    arrivals: ArrivalProcess = Field(
        default=ArrivalProcess(),
        description="The arrival process: how Perseus chooses the send times of the requests.",
    )
    client: ClientSettings = Field(
        default=ClientSettings(),
        description="How the client sends the requests: protocol, shared memory and processes.",
    )
