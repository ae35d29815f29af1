"""Measure one cell: start the server, check what it serves, search the peak, keep everything."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perseus import host, raw, stats
from perseus.arrivals import Arrivals, stream
from perseus.client import Client, sequential_ms
from perseus.files import write_json
from perseus.live import LiveSystem
from perseus.monitor import Monitor
from perseus.progress import describe_peak, describe_window
from perseus.route import Route, request_images, route_to
from perseus.search import LoadLine, Outcome, Peak, Window, find_peak, no_peak
from perseus.server import RunningServer, ServerError, embedded_triton, terminate_as_exit
from perseus.settings import Effort, Settings
from perseus.verify import verify
from perseus.window import Sla

UNLOADED_REQUESTS = 40
UNLOADED_LIMIT_S = 2.0


@dataclass(frozen=True)
class Inputs:
    """The files that a cell is measured from.

    `references` are by tenant; `dedicated_records` are of all cells that measured one of the
    tenants alone on the same server, none for a dedicated cell.
    """

    repository: Path
    references: Mapping[str, Path]
    dedicated_records: Sequence[Path]


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
    wrong answers, and TooFewCoresError.
    """
    server_cores, client_cores = host.split_cores(cell["server"]["cores"])
    os.sched_setaffinity(0, client_cores)
    started = {"unix_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()}
    say("starting the server")
    with ExitStack() as stack:
        stack.enter_context(terminate_as_exit())
        requests = stack.enter_context(raw.RequestsWriter(outputs.requests))
        launcher = embedded_triton(
            inputs.repository,
            outputs.server_log,
            server_cores,
            rate_limited_cores=len(server_cores) if _has_priorities(cell) else 0,
        )
        server = stack.enter_context(launcher)
        startup_s = (time.monotonic_ns() - started["monotonic_ns"]) / 1e9
        errors = verify(server, cell, inputs.references)
        monitor = Monitor(
            outputs.monitor, server.metrics_url, server.pid, server_cores, client_cores
        )
        stack.enter_context(monitor)
        routes = stack.enter_context(_routes(cell, inputs, server))
        measured = _Measured(
            cell, inputs, server, routes, requests, (server_cores, client_cores), say
        )
        peak = measured.peak()
    say(describe_peak(peak, measured.line, [tenant["name"] for tenant in cell["tenants"]]))
    raw.write_windows(outputs.windows, measured.rows)
    write_json(
        outputs.record,
        {
            "cell": dict(cell),
            "host": host.describe(server_cores, client_cores)
            | {"client_realtime": measured.client_realtime},
            "started": started,
            "finished_monotonic_ns": time.monotonic_ns(),
            "startup_s": startup_s,
            "relative_errors": errors,
            **measured.record(peak),
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
        self._server_cores, self._client_cores = cores
        self._names = [tenant["name"] for tenant in cell["tenants"]]
        self._slas = [Sla(tenant["sla_percentile"], tenant["sla_ms"]) for tenant in cell["tenants"]]
        self._routes = routes
        self._unloaded_ms = {
            name: sequential_ms(route, UNLOADED_REQUESTS, UNLOADED_LIMIT_S)
            for name, route in self._routes.items()
        }
        self._peaks_rps = dedicated_peaks(inputs.dedicated_records)
        self.line, self._start = load_line(
            cell["line"], self._names, self._peaks_rps, self._unloaded_ms
        )
        self.rows: list[dict[str, Any]] = []
        self.client_realtime: bool | None = None
        """Whether the clients ran before ordinary processes (SCHED_RR); None if none ran."""
        self._errors: dict[str, dict[str, str]] = {}

    def peak(self) -> Peak:
        if reason := self._infeasible():
            return no_peak(Outcome.INFEASIBLE, reason)
        try:
            return self._search()
        except ServerError as error:
            return no_peak(Outcome.FAILED, str(error))

    def record(self, peak: Peak) -> dict[str, Any]:
        """What the tables need beside the windows; scales are points of the load line."""
        return {
            "outcome": peak.outcome,
            "reason": peak.reason,
            "line": asdict(self.line),
            "estimate_scale": peak.estimate,
            "certified_scale": peak.certified,
            "certified_window": peak.certified_window,
            "first_failing_scale": peak.first_failing,
            "bootstrap_scales": [round(scale, 6) for scale in peak.bootstrap.tolist()],
            "requests": sum(row["requests"] for row in self.rows),
            "measured_s": sum(row["elapsed_s"] for row in self.rows) / max(len(self._names), 1),
            "unloaded_p50_ms": {
                name: stats.percentile(ms, 50) for name, ms in self._unloaded_ms.items()
            },
            "dedicated_rps": self._peaks_rps,
            "errors": self._errors,
        }

    def _infeasible(self) -> str:
        """Why no load at all can keep the SLAs, if so."""
        for name, peak_rps in self._peaks_rps.items():
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

    def _search(self) -> Peak:
        cell, slowest_s = self._cell, max(sla.latency_ms for sla in self._slas) / 1000
        with ExitStack() as stack:
            clients = [
                Client(name, route, self._client_cores, self._processes())
                for name, route in self._routes.items()
            ]
            for client in clients:
                stack.enter_context(client)
            self.client_realtime = all(client.prompt for client in clients)
            system = LiveSystem(
                self._server,
                clients,
                Arrivals(**cell["arrivals"]),
                [stream(cell["seed"], cell["repeat"], i) for i in range(len(clients))],
                self._requests,
                server_cores=self._server_cores,
                client_cores=self._client_cores,
                patience_s=slowest_s,
            )
            self._errors = system.errors

            def keep(window: Window, seconds_left: float) -> None:
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

            return find_peak(
                system,
                self.line,
                self._slas,
                settings(cell["settings"]),
                start=self._start,
                rng=stream(cell["seed"], cell["repeat"], len(clients)),
                on_window=keep,
            )

    def _processes(self) -> int:
        """Client processes of each tenant.

        By default as many as have a core: more would only take turns on it, and a tenant that needs
        more than a core could not get it from one process.
        """
        chosen = self._cell["client"]["processes"]
        return chosen or max(1, len(self._client_cores) // len(self._names))


def _has_priorities(cell: Mapping[str, Any]) -> bool:
    return any(tenant["priority"] is not None for tenant in cell["tenants"])


def settings(values: Mapping[str, Any]) -> Settings:
    """Search settings from a slice of the configuration."""
    efforts = {name: Effort(**values[name]) for name in ("coarse", "root", "confirm")}
    return Settings(**{**values, **efforts})


def dedicated_peaks(records: Sequence[Path]) -> dict[str, float]:
    """Each tenant's dedicated peak in requests/s: the mean estimate of its repeats.

    Of those that found a limit of the server; NaN when none did. On a dedicated load line the scale
    is the rate itself.
    """
    found: dict[str, list[float]] = {}
    for path in records:
        record = json.loads(path.read_text())
        (tenant,) = record["cell"]["tenants"]
        scales = found.setdefault(tenant["name"], [])
        if record["outcome"] in (Outcome.OK, Outcome.UNCERTIFIED):
            scales.append(record["estimate_scale"])
    return {name: float(np.mean(s)) if s else float("nan") for name, s in found.items()}


def load_line(
    spec: Mapping[str, Any],
    names: Sequence[str],
    peaks_rps: Mapping[str, float],
    unloaded_ms: Mapping[str, np.ndarray],
) -> tuple[LoadLine, float]:
    """The load line in requests/s, and the scale to begin at, from a slice of the plan.

    The scale of a dedicated line is in requests/s. On the others s = 1 (for "hold": one minus the
    held fraction) is where sharing neither gains nor loses.
    """
    if spec["kind"] == "dedicated":
        served_alone_rps = 1000 / stats.percentile(unloaded_ms[names[0]], 50)
        return LoadLine((0.0,), (1.0,)), 0.6 * served_alone_rps
    if spec["kind"] == "mix":
        total = sum(spec["weights"])
        shares = [weight / total for weight in spec["weights"]]
        direction = tuple(s * peaks_rps[n] for s, n in zip(shares, names, strict=True))
        return LoadLine((0.0,) * len(names), direction), 0.8
    held = spec["held_percent"] / 100
    others = len(names) - 1
    base = tuple(held * peaks_rps[n] if n == spec["held"] else 0.0 for n in names)
    direction = tuple(0.0 if n == spec["held"] else peaks_rps[n] / others for n in names)
    return LoadLine(base, direction), 0.8 * (1 - held)


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
