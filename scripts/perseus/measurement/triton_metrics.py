"""Read the metrics of Triton over HTTP."""

from __future__ import annotations

import http.client
import math
import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from perseus.serving.access import Access, read_within

TIMEOUT_S = 0.5
T = TypeVar("T")

Key = tuple[str, str | None]
"""Name of a metric, and the model that the metric describes (None without a model)."""


@dataclass(frozen=True)
class Scrape:
    """The values of Triton's metrics in one reading."""

    counters: Mapping[Key, float]
    gauges: Mapping[Key, float]


def parse_metrics(text: str) -> Scrape:
    """Read Triton's metrics in Prometheus's text format.

    For each counter or gauge called `nv_inference_*`, the result contains one sum per model, over
    all versions, reasons of failure and GPUs. For each gauge called `nv_cpu_*` or `nv_gpu_*`, the
    result contains the sum over all labels. The sums omit values that are not finite.

    Raises:
        ValueError: the text is not in Prometheus's text format.
    """
    found: dict[str, dict[Key, float]] = {"counter": defaultdict(float), "gauge": {}}
    for family in text_string_to_metric_families(text):
        wanted = family.name.startswith(("nv_inference_", "nv_cpu_", "nv_gpu_"))
        if wanted and family.type in found:
            values = found[family.type]
            for sample in family.samples:
                if not math.isfinite(sample.value):
                    continue
                # Do not use the name of the sample: the parser appends "_total" for counters.
                key = (family.name, sample.labels.get("model"))
                values[key] = values.get(key, 0.0) + sample.value
    return Scrape(counters=dict(found["counter"]), gauges=found["gauge"])


def told_precisions(text: str) -> dict[str, str]:
    """Return the precision in which each model is computed, in the notation of the configuration
    (for example fp32).

    The dictionary contains only models whose backend has a metric for the precision. Raises
    ValueError if the text is not in Prometheus's text format.
    """
    return {
        sample.labels["model"]: sample.labels["precision"].replace("f32", "fp32", 1)
        for family in text_string_to_metric_families(text)
        if family.name == "perseus_computed_precision"
        for sample in family.samples
    }


def counter_increases(before: Mapping[Key, float], after: Mapping[Key, float]) -> dict[Key, float]:
    """Return the increase of each counter between two readings.

    A counter that is lower in the second reading began at 0 again, because the server was restarted
    or the model was loaded again. A counter that is missing in the first reading also began at 0.
    In both cases, the increase is the value in the second reading. (The function `increase` of
    Prometheus does the same.)
    """
    return {
        key: value - before.get(key, 0.0) if value >= before.get(key, 0.0) else value
        for key, value in after.items()
    }


class Scraper:
    """Reads the metrics over one connection, which stays open between readings.

    With a new connection for each reading, a reading would take twice as much CPU time.
    """

    def __init__(self, url: str, access: Access) -> None:
        parts = urlsplit(url)
        if parts.hostname is None:
            raise ValueError(f"{url}: not the URL of a server's metrics")
        self.is_local = parts.hostname in ("127.0.0.1", "::1", "localhost")
        self._path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/metrics"
        self._headers = access.values(parts.scheme)
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = access.ssl_context() or ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_S, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(
                parts.hostname, parts.port or 80, timeout=TIMEOUT_S
            )

    def get(self) -> Scrape | None:
        """Return the current metrics, or None if the metrics are unavailable."""
        return self.read(parse_metrics)

    def read(self, parse: Callable[[str], T]) -> T | None:
        """Return the result of `parse` for the text of the current metrics; None if there is no
        valid text."""
        try:
            deadline_s = time.monotonic() + TIMEOUT_S
            self._connection.request("GET", self._path, headers=self._headers)
            # Close the response in any case: an open response blocks the next request.
            with self._connection.getresponse() as response:
                text = read_within(response, deadline_s).decode()
            return parse(text) if response.status == http.HTTPStatus.OK else None
        # For invalid text, the parser may raise LookupError and TypeError.
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
            self._connection.close()
            return None

    def close(self) -> None:
        self._connection.close()
