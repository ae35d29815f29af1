"""Define the experiment `replay`: send requests in bursts or at recorded times, for all tenants
together and for each tenant alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeVar

from pydantic import Field

from perseus.study.base import Name, Part, Real, Whole
from perseus.study.experiments.base import MAX_RPS, ExperimentRun, ExperimentSettings, Rate
from perseus.study.problems import Problems
from perseus.study.recorded import Recorded, read_named
from perseus.study.trace_files import TraceError
from perseus.study.traces import TraceOf, TraceSource

T = TypeVar("T")
Percent = Annotated[Whole, Field(ge=1, le=1000)]
Begin = Annotated[Real, Field(ge=0)]


def of_tenant(values: Sequence[T], tenant: int) -> T:
    """Return the value for the tenant with the index `tenant`. `values` contains one value for each
    tenant, or one value for all tenants."""
    return values[tenant % len(values)]


class ReplayPhase(NamedTuple):
    """A part of a replay: its name, and the indices of the tenants that send requests."""

    name: str
    loaded: tuple[int, ...]


class Bursts(Part):
    """Parameters of bursts, as in `traffic.mmpp.Mmpp` (a Markov-modulated Poisson process).

    The rate in a burst is `burst_factor` times the rate between bursts. A burst lasts on average
    `burst_s` seconds. Bursts fill the share `burst_share` (0 to 1) of the time.
    """

    burst_factor: float
    burst_s: float
    burst_share: float


class Trace(Part):
    """The parts of trace files that a replay sends.

    A part begins `begins_s` seconds after the beginning of its trace. One recorded second takes
    `time_scale` seconds in the replay. `sources` and `begins_s` contain one entry for each tenant,
    or one entry for all tenants.
    """

    sources: tuple[TraceSource, ...]
    begins_s: tuple[float, ...]
    time_scale: float


class Run(ExperimentRun):
    """Send the requests of all tenants together, and the requests of each tenant alone.

    Each of these parts lasts `duration_s` seconds. The mean rates are `rates_rps`, or
    `percents_of_peak` % of the dedicated peaks. If both lists are empty, each tenant has the rate
    of its trace. Only the arrival process "gamma" uses `cv`, only "mmpp" uses `bursts`, and only
    "trace" uses `trace`.
    """

    kind: Literal["replay"] = "replay"
    name: str
    process: Literal["poisson", "gamma", "mmpp", "trace"]
    duration_s: float
    rates_rps: tuple[float, ...] = ()
    percents_of_peak: tuple[int, ...] = ()
    cv: float = 1.0
    bursts: Bursts | None = None
    trace: Trace | None = None

    @property
    def needs_dedicated_peaks(self) -> bool:
        return bool(self.percents_of_peak)

    @property
    def takes_arrivals(self) -> bool:
        return False  # a replay has an arrival process of its own

    @property
    def traces(self) -> tuple[TraceSource, ...]:
        return self.trace.sources if self.trace else ()

    def phases(self, tenants: int) -> list[ReplayPhase]:
        """Return the phases of the replay: first all tenants together, then each tenant alone.

        A replay of one tenant has only one phase: the tenant alone.
        """
        alone = [ReplayPhase("alone", (i,)) for i in range(tenants)]
        return alone if tenants == 1 else [ReplayPhase("shared", tuple(range(tenants))), *alone]


OF_PROCESS: Final = {
    "cv": "gamma",
    **dict.fromkeys(("burst_factor", "burst_s", "burst_share"), "mmpp"),
    **dict.fromkeys(("traces", "begins_s", "time_scale"), "trace"),
}
"""Keys that are valid for only one arrival process, with the name of this process."""

LISTS: Final = ("rates_rps", "percents_of_peak", "traces", "begins_s")
"""Keys whose list has one entry for each tenant, or one entry for all tenants."""


class Settings(ExperimentSettings):
    """Send requests in bursts or at recorded times. Each list contains one entry for each tenant,
    or one entry for all tenants."""

    kind: Literal["replay"] = Field(
        description=(
            "`replay` sends requests in bursts or at recorded times. Perseus sends the requests of"
            " all tenants together and, in other parts of the replay, the same requests of each"
            " tenant alone. The order of these parts is random. The results are the share of"
            " requests within the SLA over time and in the worst minute, and the recovery time"
            " after bursts. Each list in the keys below has one entry for each tenant, in the order"
            " of the tenants, or one entry for all tenants."
        )
    )
    name: Name | None = Field(
        default=None,
        description=(
            "The name of the replay. If a scenario has several replays, their names must differ."
            " Default: the arrival process."
        ),
    )
    process: Literal["poisson", "gamma", "mmpp", "trace"] = Field(
        description=(
            "The process that determines the send times: `gamma` (gamma-distributed gaps between"
            " requests), `mmpp` (bursts of a Markov-modulated Poisson process), `trace` (recorded"
            " times) or, for comparison, `poisson`."
        ),
        examples=["mmpp"],
    )
    duration_s: Annotated[Real, Field(ge=1, le=3600)] = Field(
        default=120.0,
        description=(
            "Duration of each part of the replay, in seconds: all tenants together, and each tenant"
            " alone."
        ),
    )
    rates_rps: Annotated[tuple[Rate, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "Mean rates of the tenants in requests/s. Default for a trace: the recorded rates."
        ),
    )
    percents_of_peak: Annotated[tuple[Percent, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="Mean rates of the tenants in percent of their dedicated peaks, in place of"
        " `rates_rps`.",
    )
    cv: Annotated[Real, Field(ge=0.01, le=20)] | None = Field(
        default=None,
        description=(
            "Coefficient of variation (standard deviation divided by mean) of the gaps between"
            " requests; only for process `gamma`. Default: 4."
        ),
    )
    burst_factor: Annotated[Real, Field(gt=1, le=1000)] | None = Field(
        default=None,
        description="Arrival rate in a burst, divided by the arrival rate between bursts; only for"
        " process `mmpp`. Default: 5.",
    )
    burst_s: Annotated[Real, Field(ge=0.001, le=3600)] | None = Field(
        default=None,
        description="Mean length of a burst in seconds; only for process `mmpp`. Default: 3.",
    )
    burst_share: Annotated[Real, Field(ge=0.001, le=0.9)] | None = Field(
        default=None,
        description=(
            "Mean share (0 to 1) of the time that bursts fill; only for process `mmpp`."
            " Default: 0.1."
        ),
    )
    traces: Annotated[tuple[TraceOf, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "Files of recorded arrivals, or mappings that select a part of a file; only for"
            " process `trace`."
        ),
    )
    begins_s: Annotated[tuple[Begin, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "Times at which the replay begins in each trace, in seconds after the beginning of the"
            " trace; only for process `trace`. Default: 0."
        ),
    )
    time_scale: Annotated[Real, Field(gt=0, le=1000)] | None = Field(
        default=None,
        description=(
            "Factor by which Perseus multiplies the recorded times: 0.1 replays the trace ten"
            " times as fast. Only for process `trace`. Default: 1."
        ),
    )

    def runs(self) -> Iterator[Run]:
        yield Run(
            name=f"replay-{self.name or self.process}",
            process=self.process,
            duration_s=self.duration_s,
            rates_rps=self.rates_rps or (),
            percents_of_peak=self.percents_of_peak or (),
            cv=(self.cv or 4.0) if self.process == "gamma" else 1.0,
            bursts=self._bursts if self.process == "mmpp" else None,
            trace=self._trace if self.process == "trace" else None,
        )

    @property
    def _bursts(self) -> Bursts:
        return Bursts(
            burst_factor=self.burst_factor or 5.0,
            burst_s=self.burst_s or 3.0,
            burst_share=self.burst_share or 0.1,
        )

    @property
    def _trace(self) -> Trace:
        return Trace(
            sources=self.traces or (),
            begins_s=self.begins_s or (0.0,),
            time_scale=self.time_scale or 1.0,
        )

    def problems(self, tenants: Sequence[str]) -> Problems:
        for key, only in OF_PROCESS.items():
            if getattr(self, key) is not None and self.process != only:
                yield (
                    (key,),
                    f"applies only to `process: {only}`, but `process` is {self.process!r}",
                )
        if self.process == "trace" and self.traces is None:
            yield ("traces",), "is missing (files of recorded arrivals)"
        if self.rates_rps is not None and self.percents_of_peak is not None:
            yield (), "has both `rates_rps:` and `percents_of_peak:` (remove one of them)"
        if self.process != "trace" and self._keeps_rates:
            yield (), "needs mean rates: write `rates_rps:` or `percents_of_peak:`"
        for key in LISTS:
            count = len(getattr(self, key) or ())
            if count > 1 and count != len(tenants):
                yield (
                    (key,),
                    f"has {count} entries for {len(tenants)} tenants (write one entry for each"
                    " tenant, or one for all)",
                )

    @property
    def _keeps_rates(self) -> bool:
        """True if the configuration states no rates, so that each tenant has the rate of its
        trace."""
        return self.rates_rps is None and self.percents_of_peak is None

    def file_problems(self, tenants: Sequence[str], folder: Path) -> Problems:
        trace, sources = self._trace, self._trace.sources
        is_asked = bool(sources) and self.process == "trace"
        parts = dict.fromkeys(
            (i % len(sources), of_tenant(trace.begins_s, i))
            for i in range(len(tenants) if is_asked else 0)
        )
        for at, begin_s in parts:
            try:
                recorded = read_named(folder, sources[at], needs_unit=True).recorded
            except TraceError as error:
                yield ("traces", at), str(error)
                continue
            for text in self._part_problems(recorded, sources[at], begin_s):
                yield ("traces", at), text

    def _part_problems(
        self, recorded: Recorded, source: TraceSource, begin_s: float
    ) -> Iterator[str]:
        """Yield the problems of the part of a trace that a tenant replays. The part begins at the
        second `begin_s` of the trace."""
        scale = self._trace.time_scale
        end_s = begin_s + self.duration_s / scale
        has_s = max(0.0, recorded.length_s - begin_s) * scale
        rate_rps = recorded.expected(begin_s, end_s).sum() / self.duration_s
        of = str(source)
        if has_s < self.duration_s * (1 - 1e-9):
            yield (
                f"{of} has only {has_s:.6g} s after second {begin_s:g}, at `time_scale` {scale:g},"
                f" but `duration_s` is {self.duration_s:g} (lower `duration_s`, or raise"
                " `time_scale`)"
            )
        elif rate_rps == 0:
            yield (
                f"{of} has no requests between second {begin_s:g} and second {end_s:g} (change"
                " `begins_s`)"
            )
        elif self._keeps_rates and rate_rps > MAX_RPS:
            yield (
                f"{of} has {rate_rps:.3g} requests/s, at `time_scale` {scale:g}, but the client can"
                f" send at most {MAX_RPS} (set `rates_rps` or `percents_of_peak`)"
            )
