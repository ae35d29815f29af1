"""Measure one cell: start the server, check what it serves, load it, keep everything."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perseus.host import cores as host
from perseus.host import gpu, machine
from perseus.host.files import write_json
from perseus.host.signals import terminate_as_exit
from perseus.measurement import raw_results as raw
from perseus.measurement.energy import window_watts
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.load_lines import dedicated_peaks, load_line
from perseus.measurement.monitor import Monitor
from perseus.measurement.progress import describe_peak, describe_window
from perseus.measurement.sweep import Level, sweep
from perseus.peak import stats
from perseus.peak.durations import expected_s, longest_s
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome, Peak, no_peak
from perseus.peak.search import find_peak
from perseus.peak.window import Window
from perseus.serving.failures import ServerError
from perseus.serving.launcher import launch
from perseus.serving.running_server import RunningServer
from perseus.serving.server_facts import server_facts
from perseus.study.presets import Effort, Settings
from perseus.study.sla import Sla
from perseus.study.traces import read_gaps_s
from perseus.traffic.arrivals import Arrivals, stream
from perseus.traffic.client import Client, processes_each, sequential_ms
from perseus.traffic.first_inferences import first_inferences
from perseus.traffic.route import Route, request_images, route_to
from perseus.traffic.verify import verify

UNLOADED_REQUESTS = 40
UNLOADED_LIMIT_S = 2.0


@dataclass(frozen=True)
class Inputs:
    """The files that a cell is measured from.

    `references` are by tenant; `dedicated_records` are of all cells that measured one of the
    tenants alone on the same server, none for a dedicated cell; `trace` is of arrivals.
    """

    repository: Path
    references: Mapping[str, Path]
    dedicated_records: Sequence[Path]
    trace: Path | None


@dataclass(frozen=True)
class Outputs:
    """The files of raw results that a cell makes."""

    requests: Path
    windows: Path
    monitor: Path
    record: Path
    server_log: Path


def measure(
    cell: Mapping[str, Any], inputs: Inputs, outputs: Outputs, say: Callable[[str], None]
) -> None:
    """Measure a cell (a `plan.measure_slice`) and write its raw results; `say` hears the progress.

    An infeasible SLA, a client at its limit, or a server that dies under load is a record with that
    verdict. Raises ServerError when the server does not start, VerificationError when it serves
    wrong answers, TooFewCoresError, and GpuError for a GPU that this machine has not.
    """
    gpus = cell["server"]["gpus"]
    of_gpus = gpu.describe(gpus)
    with ExitStack() as stack:
        stack.enter_context(terminate_as_exit())
        server_cores, client_cores = stack.enter_context(host.cores_of(cell["server"]))
        os.sched_setaffinity(0, client_cores)
        started = {"unix_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()}
        say("starting the server")
        requests = stack.enter_context(raw.RequestsWriter(outputs.requests))
        launcher = launch(
            cell["server"],
            inputs.repository,
            outputs.server_log,
            server_cores,
            say=say,
            rate_limited_cores=len(server_cores) if _has_priorities(cell) else 0,
        )
        server = stack.enter_context(launcher)
        startup_s = (time.monotonic_ns() - started["monotonic_ns"]) / 1e9
        first_ms = first_inferences(server, cell, inputs.references)
        errors = verify(server, cell, inputs.references)
        facts = server_facts(server)
        monitor = Monitor(
            outputs.monitor,
            server.metrics_url,
            server.pid,
            server_cores,
            client_cores,
            gpus=gpus,
            access=server.access,
        )
        stack.enter_context(monitor)
        routes = stack.enter_context(_routes(cell, inputs, server))
        measured = _Measured(
            cell, inputs, server, routes, requests, (server_cores, client_cores), say
        )
        found = measured.sweep() if cell["line"]["kind"] == "concurrency" else measured.search()
    raw.write_windows(outputs.windows, measured.rows)
    write_json(
        outputs.record,
        {
            "cell": dict(cell),
            "host": machine.describe(server_cores, client_cores)
            | {"client_realtime": measured.client_realtime, "gpu": of_gpus},
            "started": started,
            "finished_monotonic_ns": time.monotonic_ns(),
            "startup_s": startup_s,
            **facts,
            "first_inference_ms": first_ms,
            "relative_errors": errors,
            **measured.record(),
            **found,
            "gpu_watts": window_watts(
                outputs.monitor, measured.rows, found.get("certified_window", -1)
            ),
        },
    )


class _Measured:
    """The search on a running server; `rows` are those of windows.parquet so far."""

    def __init__(
        self,
        cell: Mapping[str, Any],
        inputs: Inputs,
        server: RunningServer,
        routes: Mapping[str, Route],
        requests: raw.RequestsWriter,
        cores: tuple[Sequence[int], Sequence[int]],
        say: Callable[[str], None],
    ) -> None:
        self._cell, self._server, self._requests, self._say = cell, server, requests, say
        self._arrivals = arrivals(cell, inputs.trace)
        self._server_cores, self._client_cores = cores
        self._names = [tenant["name"] for tenant in cell["tenants"]]
        self._slas = [Sla(tenant["sla_percentile"], tenant["sla_ms"]) for tenant in cell["tenants"]]
        self._routes = routes
        self._unloaded_ms = {
            name: sequential_ms(route, UNLOADED_REQUESTS, UNLOADED_LIMIT_S)
            for name, route in self._routes.items()
        }
        self._dedicated_records = inputs.dedicated_records
        self.rows: list[dict[str, Any]] = []
        self.client_realtime: bool | None = None
        """Whether the clients ran before ordinary processes (SCHED_RR); None if none ran."""
        self._errors: dict[str, dict[str, str]] = {name: {} for name in self._names}

    def search(self) -> dict[str, Any]:
        """Search the peak; its part of the record, with scales as points of the load line."""
        peaks_rps = dedicated_peaks(self._dedicated_records)
        line, start = load_line(self._cell["line"], self._names, peaks_rps, self._unloaded_ms)
        if reason := self._infeasible(peaks_rps):
            peak = no_peak(Outcome.INFEASIBLE, reason)
        else:
            try:
                peak = self._peak(line, start)
            except ServerError as error:
                peak = no_peak(Outcome.FAILED, str(error))
        self._say(describe_peak(peak, line, self._names))
        return {
            "outcome": peak.outcome,
            "reason": peak.reason,
            "line": asdict(line),
            "dedicated_rps": peaks_rps,
            "estimate_scale": peak.estimate,
            "certified_scale": peak.certified,
            "certified_window": peak.certified_window,
            "first_failing_scale": peak.first_failing,
            "cliff": peak.cliff,
            "bootstrap_scales": [round(scale, 6) for scale in peak.posterior.tolist()],
        }

    def sweep(self) -> dict[str, Any]:
        """Go through the concurrencies of a closed loop; its part of the record."""
        outcome, reason, levels = Outcome.OK, "", list[Level]()
        try:
            with self._loaded() as system:
                levels = sweep(
                    system,
                    self._cell["line"]["concurrencies"],
                    self._names,
                    self._slas,
                    settings(self._cell["settings"]),
                    self._rng(),
                    partial(self._keep, system),
                )
        except ServerError as error:
            outcome, reason = Outcome.FAILED, str(error)
        return {
            "outcome": outcome,
            "reason": reason,
            "levels": [asdict(level) for level in levels],
        }

    def record(self) -> dict[str, Any]:
        """What every cell tells beside its windows."""
        return {
            "requests": sum(row["requests"] for row in self.rows),
            "measured_s": sum(row["elapsed_s"] for row in self.rows) / max(len(self._names), 1),
            "unloaded_p50_ms": {
                name: stats.percentile(ms, 50) for name, ms in self._unloaded_ms.items()
            },
            "errors": self._errors,
        }

    def _infeasible(self, peaks_rps: Mapping[str, float]) -> str:
        """Why no load at all can keep the SLAs, if so."""
        for name, peak_rps in peaks_rps.items():
            if not peak_rps > 0:
                return f"{name} has no dedicated peak, so a share of it means nothing"
        for name, sla in zip(self._names, self._slas, strict=True):
            # The median: few requests say nothing of a high percentile, and one may hiccup.
            alone_ms = stats.percentile(self._unloaded_ms[name], 50)
            if alone_ms > sla.latency_ms:
                return (
                    f"{name} takes {alone_ms:.1f} ms (median) without any load, its SLA is"
                    f" {sla.latency_ms:g} ms"
                )
        return ""

    def _peak(self, line: LoadLine, start: float) -> Peak:
        chosen = settings(self._cell["settings"])
        self._say_cost(chosen, line.rates_rps(start))
        with self._loaded() as system:
            return find_peak(
                system,
                line,
                self._slas,
                chosen,
                start=start,
                unloaded_ms=[self._unloaded_ms[name] for name in self._names],
                names=self._names,
                rng=self._rng(),
                batching=any(tenant["dynamic_batching"] for tenant in self._cell["tenants"]),
                on_window=partial(self._keep, system),
            )

    @contextmanager
    def _loaded(self) -> Iterator[LiveSystem]:
        """The server with the clients of all tenants."""
        cell, slowest_s = self._cell, max(sla.latency_ms for sla in self._slas) / 1000
        processes = processes_each(
            cell["client"]["processes"], self._client_cores, len(self._names)
        )
        with ExitStack() as stack:
            clients = [
                stack.enter_context(Client(name, route, self._client_cores, processes))
                for name, route in self._routes.items()
            ]
            self.client_realtime = all(client.prompt for client in clients)
            system = LiveSystem(
                self._server,
                clients,
                self._arrivals,
                [stream(cell["seed"], cell["repeat"], i) for i in range(len(clients))],
                self._requests,
                server_cores=self._server_cores,
                client_cores=self._client_cores,
                patience_s=slowest_s,
            )
            self._errors = system.errors
            yield system

    def _rng(self) -> np.random.Generator:
        return stream(self._cell["seed"], self._cell["repeat"], len(self._names))

    def _keep(self, system: LiveSystem, window: Window, seconds_left: float) -> None:
        """Turn a window into rows, one per tenant, and tell of it."""
        ended = system.ended[-1]
        for name, seen, parts in zip(
            self._names, window.tenants, ended.decompositions, strict=True
        ):
            self.rows.append(
                {
                    "window": len(system.ended) - 1,
                    "phase": window.phase,
                    "scale": window.scale,
                    "elapsed_s": window.elapsed_s,
                    "settle_s": window.settle_s,
                    "start_ns": ended.start_ns,
                    "window_verdict": window.verdict,
                    "tenant": name,
                }
                | seen.as_dict()
                | asdict(parts)
            )
        self._say(describe_window(window, self._names, seconds_left))

    def _say_cost(self, chosen: Settings, rates_rps: Sequence[float]) -> None:
        about_s = expected_s(chosen, self._slas, rates_rps)
        most_s = longest_s(chosen, self._slas)
        self._say(f"about {about_s / 60:.1f} min of load, at most {most_s / 60:.0f} min")


def _has_priorities(cell: Mapping[str, Any]) -> bool:
    return any(tenant["priority"] is not None for tenant in cell["tenants"])


def settings(values: Mapping[str, Any]) -> Settings:
    """Search settings from a slice of the configuration."""
    efforts = {name: Effort(**values[name]) for name in ("coarse", "root", "confirm")}
    return Settings(**{**values, **efforts})


def arrivals(cell: Mapping[str, Any], trace: Path | None) -> Arrivals:
    """The arrival process of a cell; `trace` is the file that it replays, if it does."""
    return Arrivals(**cell["arrivals"], gaps_s=read_gaps_s(trace) if trace else ())


@contextmanager
def _routes(
    cell: Mapping[str, Any], inputs: Inputs, server: RunningServer
) -> Iterator[dict[str, Route]]:
    """How each tenant's requests reach the server while the context is open."""
    timeout_s = max(5.0, 20 * max(tenant["sla_ms"] for tenant in cell["tenants"]) / 1000)
    with ExitStack() as stack:
        routes: dict[str, Route] = {}
        for tenant in cell["tenants"]:
            name = tenant["name"]
            with np.load(inputs.references[name]) as arrays:
                images = arrays["input"]
            batches = [
                images[part] for part in request_images(len(images), tenant["request_batch_size"])
            ]
            routes[name] = stack.enter_context(
                route_to(server, name, batches, cell["client"], timeout_s)
            )
        yield routes
