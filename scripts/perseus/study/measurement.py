"""Settings of the measurement: evidence, arrivals and client."""

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
        description="Open-loop arrivals. `constant` hides queueing and is there for comparison.",
    )
    trace: TraceOf | None = Field(
        default=None,
        description=(
            "A file of recorded arrivals, or a mapping that selects a part of it; trace only. Its"
            " gaps are scaled to each rate. A window begins at a random time of the trace, and the"
            " trace repeats."
        ),
    )
    cv: Annotated[Real, Field(gt=0, le=20)] | None = Field(
        default=None,
        description="Coefficient of variation of the gaps; gamma only. Default, 1.",
    )


class ClientSettings(Part):
    """How requests reach the server."""

    protocol: Literal["grpc", "http"] = Field(
        default="grpc", description="Protocol of the requests."
    )
    shared_memory: Flag = Field(
        default=False,
        description=(
            "Whether inputs are in system shared memory rather than in each request. Needs a"
            " server on the same host."
        ),
    )
    processes: Literal["auto"] | Annotated[Whole, Field(ge=1, le=256)] = Field(
        default="auto",
        description="Client processes of each tenant, which share its requests. `auto`, the"
        " client's cores divided by the tenants, at least one.",
    )


class Measurement(Part):
    """How much evidence is collected."""

    preset: PresetName = Field(
        default="quick",
        description="Amount of evidence: confidence, windows, repeats"
        " (docs/explanation/search.md).",
    )
    repeats: Annotated[Whole, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="Independent repeats with a restarted server. Default, the preset's.",
    )
    ratio_within: Annotated[Real, Field(ge=0.01, le=0.5)] | None = Field(
        default=None,
        description=(
            "Target for half the width of the 95 % interval of a sharing ratio. A cell of several"
            " tenants ends its saturation rounds when they are precise enough for it. Default, the"
            " preset's (docs/explanation/sharing-ratio.md)."
        ),
    )
    arrivals: ArrivalProcess = Field(
        default=ArrivalProcess(), description="The arrival process of the requests."
    )
    client: ClientSettings = Field(
        default=ClientSettings(), description="How requests reach the server."
    )
