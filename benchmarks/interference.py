"""Test whether a study finds the known sharing ratio of a real server.

Two models share a core. A request to a model takes a known number of rounds of computation. While
the other model also computes, a request takes longer by a known share. The true sharing ratio comes
from a simulated queue with processor sharing, in which requests take longer by the same share. In
the simulated queue, each model has its service times alone on the server. A closed loop measures
these service times in the same study.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from benchmarks.models import KNOWN_BACKENDS, Spin, write_spin
from benchmarks.results import Goal, Row
from benchmarks.serving import SEED, Place, Say, loading, serving
from benchmarks.sharing import MIX, NAMES, Pair, ratio_of, record_of
from benchmarks.simulation import deterministic
from perseus.measurement.progress.messages import describe_window
from perseus.peak.load_line import load_line
from perseus.peak.search import find_peak
from perseus.results.records import PeakRecord
from perseus.results.repeats import Quantity
from perseus.study.experiments.peak import DEDICATED
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla
from perseus.traffic.client import Client, sequential_ms
from perseus.traffic.route import Route, inline

BENCHMARK = "interference"
SLOWER = (0.0, 0.05, 0.15)
"""Shares by which a request takes longer while both models compute."""

STUDIES = 2
WORKS_MS, SLAS = (8.0, 24.0), (Sla(latency_ms=80), Sla(latency_ms=160))
"""Time of the computation of each model, and its SLA. The times are many times as long as the time
that Triton itself needs for a request (about 0.5 ms)."""

CLOSE = Goal("<=", 0.02, "ours")


@dataclass(frozen=True)
class Studied:
    """The sharing ratio that a study measured, and the true sharing ratio."""

    ratio: Quantity
    truth: float

    @property
    def covers(self) -> bool:
        interval = self.ratio.interval()
        return interval.low <= self.truth <= interval.high

    @property
    def half_width(self) -> float:
        interval = self.ratio.interval()
        return (interval.high - interval.low) / 2


def run(at: Place, say: Say) -> Iterator[Row]:
    rounds = _rounds(at)
    for slower in SLOWER:
        found = []
        for number in range(STUDIES):
            studied = _study(at, rounds, slower, number, say)
            say(f"{slower:.0%} slower: ratio {studied.ratio.value:.3f}, truth {studied.truth:.3f}")
            found.append(studied)
        yield from rows_of(f"requests take {slower:.0%} longer while both models work", found)


def rows_of(case: str, found: Sequence[Studied]) -> Iterator[Row]:
    errors = [each.ratio.value / each.truth - 1 for each in found]
    for metric, value, goal in (
        ("error of the mean sharing ratio (lower is better)", abs(np.mean(errors)), CLOSE),
        ("mean sharing ratio", np.mean([each.ratio.value for each in found]), None),
        ("true sharing ratio", np.mean([each.truth for each in found]), None),
        ("largest error of one study", np.abs(errors).max(), None),
        ("share of 95 % intervals with the truth", np.mean([e.covers for e in found]), None),
        ("mean half-width of the interval", np.mean([e.half_width for e in found]), None),
    ):
        yield Row(BENCHMARK, case, metric, float(value), goal=goal)


def _rounds(at: Place) -> tuple[int, ...]:
    """Return the rounds per request of each model, so that a request alone takes about WORKS_MS."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [at.server_core])
    block, done, start_s = bytes(2**15), 0, time.perf_counter()
    while time.perf_counter() < start_s + 1:
        hashlib.sha256(block).digest()
        done += 1
    os.sched_setaffinity(0, mine)
    return tuple(round(done * work_ms / 1000) for work_ms in WORKS_MS)


def _study(at: Place, rounds: Sequence[int], slower: float, number: int, say: Say) -> Studied:
    """Run three searches on new servers: each model alone, then both models in the mix 1 : 1."""
    alone = [_searched(at, rounds, (1.0, 1.0), (i,), {}, number, say) for i in range(len(NAMES))]
    dedicated_rps = {name: record.estimate_scale for name, record in zip(NAMES, alone, strict=True)}
    works_s = [
        1 / float(np.mean(record.speeds_rps[name]))
        for name, record in zip(NAMES, alone, strict=True)
    ]
    # The time that Triton itself needs for a request does not grow, so the rounds grow by more.
    factors = [
        1 + slower * 1000 * work_s / work_ms
        for work_s, work_ms in zip(works_s, WORKS_MS, strict=True)
    ]
    shared = _searched(at, rounds, factors, (0, 1), dedicated_rps, number, say)
    first, second = map(deterministic, works_s)
    pair = Pair((first, second), SLAS, instances=True, interference=slower)
    return Studied(ratio_of((shared, *alone)), pair.truth)


def _searched(
    at: Place,
    rounds: Sequence[int],
    factors: Sequence[float],
    tenants: Sequence[int],
    dedicated_rps: Mapping[str, float],
    number: int,
    say: Say,
) -> PeakRecord:
    """Return the record of one search on a server that has only the models of `tenants`. While both
    models compute, the rounds of model i take `factors[i]` times as long."""
    names = [NAMES[i] for i in tenants]
    repository = at.folder / f"spin-{'-'.join(f'{NAMES[i]}-{factors[i]:g}' for i in tenants)}"
    busy = at.folder.resolve() / "busy"
    busy.write_bytes(bytes(2))
    for i in tenants:
        write_spin(repository, NAMES[i], Spin(rounds[i], factors[i], str(busy), i))
    of_cell = MIX if len(tenants) > 1 else DEDICATED
    inputs = inline([np.zeros((1, 1), np.float32)])
    with ExitStack() as stack:
        server = stack.enter_context(serving(at, repository, KNOWN_BACKENDS))
        routes = [Route("grpc", server.grpc_address, name, inputs, timeout_s=20) for name in names]
        unloaded_ms = [sequential_ms(route, 100, 5) for route in routes]
        clients = [
            stack.enter_context(Client(name, route, [at.client_core]))
            for name, route in zip(names, routes, strict=True)
        ]
        system = stack.enter_context(loading(at, server, *clients, longest_sla_s=1))
        medians_ms = {
            name: float(np.median(ms)) for name, ms in zip(names, unloaded_ms, strict=True)
        }
        line, start = load_line(of_cell, names, dict(dedicated_rps), medians_ms)
        peak = find_peak(
            system,
            line,
            [SLAS[i] for i in tenants],
            PRESETS["quick"].settings,
            start=start,
            unloaded_ms=unloaded_ms,
            names=names,
            rng=np.random.default_rng([SEED, number]),
            on_window=lambda window, left_s: say(describe_window(window, names, left_s)),
        )
    return record_of(peak, names, of_cell, line)
