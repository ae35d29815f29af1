"""The search of the 2020 client, written from its description, to compare with Perseus.

The client raises the rate in small steps, even after an SLA violation, and sends one pass of 5,392
requests at each rate. The peak is the highest throughput of the passes that keep the SLA. The
client sleeps between two sends, and measures the latency from the moment at which a worker of its
pool takes the request.

If the description leaves a choice, this module favours the 2020 client: the arrivals are Poisson,
the pool does not limit the rate, and the search ends after three violations in succession.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import tritonclient.grpc as triton

from benchmarks.simulation import Service
from perseus.peak import stats
from perseus.peak.lindley import departures_s
from perseus.peak.stats import Floats
from perseus.serving.access import PLAIN
from perseus.study.sla import Sla

REQUESTS = 5392
POOL = 64
VIOLATIONS = 3
OVERSHOOT_S = 1e-4
"""Each sleep is longer than requested by this time, as on Linux (timer slack and waking up)."""


@dataclass(frozen=True)
class Pass:
    throughput_rps: float
    latency_ms: Floats


@dataclass(frozen=True)
class Ramp:
    """The peak that a ramp finds (0 if no pass keeps the SLA), and the passes and seconds of the
    ramp."""

    peak_rps: float
    passes: int
    seconds: float

    @property
    def requests(self) -> int:
        return self.passes * REQUESTS


def climb(offer: Callable[[float], Pass], rates_rps: Iterable[float], sla: Sla) -> Ramp:
    """Raise the rate until VIOLATIONS passes in succession violate the SLA, or no rate is left."""
    peak_rps, passes, violations, seconds = 0.0, 0, 0, 0.0
    for rate_rps in rates_rps:
        seen = offer(rate_rps)
        passes += 1
        seconds += REQUESTS / seen.throughput_rps
        if stats.percentile(seen.latency_ms, sla.percentile) <= sla.latency_ms:
            peak_rps, violations = max(peak_rps, seen.throughput_rps), 0
        else:
            violations += 1
        if violations == VIOLATIONS:
            break
    return Ramp(peak_rps, passes, seconds)


def simulated_pass(rate_rps: float, service: Service, rng: np.random.Generator) -> Pass:
    """Run a pass against a single-server queue in virtual time."""
    send_s = np.cumsum(rng.exponential(1 / rate_rps, REQUESTS) + OVERSHOOT_S)
    done_s = departures_s(send_s, service(rng, REQUESTS))
    return Pass(REQUESTS / float(done_s[-1]), (done_s - send_s) * 1000)


def live_pass(address: str, model: str, rate_rps: float, rng: np.random.Generator) -> Pass:
    """Run a pass against a running server, whose model takes one number."""
    tensor = triton.InferInput("input", [1, 1], "FP32")
    tensor.set_data_from_numpy(np.zeros((1, 1), np.float32))
    latency_ms = np.zeros(REQUESTS)
    with PLAIN.grpc_client(address) as client:

        def request(i: int) -> None:
            start_s = time.monotonic()
            client.infer(model, [tensor])
            latency_ms[i] = (time.monotonic() - start_s) * 1000

        start_s = time.monotonic()
        with ThreadPoolExecutor(POOL) as pool:
            futures = []
            for i in range(REQUESTS):
                time.sleep(rng.exponential(1 / rate_rps))
                futures.append(pool.submit(request, i))
        for future in futures:
            future.result()
        return Pass(REQUESTS / (time.monotonic() - start_s), latency_ms)
