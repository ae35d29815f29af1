"""Define the key `grid` of a scenario. A grid varies keys of servers and tenants to find the
cheapest setting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field

from perseus.study.base import Different, Part, Real
from perseus.study.model import Precision
from perseus.study.server import Cores, RuntimeName
from perseus.study.setting import Setting, Value
from perseus.study.tenant import BatchSize, Instances, LargestBatch, QueueDelay, Threads

NO_BATCHING: Final = "none"
Delay = Annotated[
    Literal["none"] | QueueDelay,
    Field(description="`none`, or the microseconds that a request may wait for other requests"),
]
Bound = Annotated[Real, Field(gt=0)]

T = TypeVar("T")
Values = Annotated[tuple[T, ...], Field(min_length=1), Different]


def _of(what: str) -> Any:
    """Return a pydantic field for an optional list of values with the description `what`."""
    return Field(default=(), description=what, json_schema_extra={"uniqueItems": True})


class Vary(Part):
    """The keys that Perseus varies, each with the list of its values. If the list of a key is
    empty, Perseus does not vary the key."""

    runtime: Values[RuntimeName] = _of(
        "The runtimes to compare. Perseus measures each server of the scenario with each runtime."
    )
    cores: Values[Cores] = _of(
        "The numbers of cores to compare. Perseus measures each server of the scenario with each"
        " number, except numbers for which this machine has too few cores. Perseus assumes that the"
        " price of a server is proportional to its number of cores."
    )
    precision: Values[Precision] = _of(
        "The numeric precisions to compare. In each setting, all tenants have the same precision."
    )
    instances: Values[Instances] = _of(
        "The numbers of instances to compare. In each setting, all tenants have the same number."
    )
    max_batch_size: Values[LargestBatch] = _of(
        "The values of `max_batch_size` to compare. In each setting, all tenants have the same"
        " value."
    )
    max_queue_delay_us: Values[Delay] = _of(
        "The queue delays of dynamic batching to compare: a number of microseconds that a request"
        " may wait for other requests, or `none` (no dynamic batching). In each setting, all"
        " tenants have the same delay."
    )
    preferred_batch_sizes: Values[tuple[BatchSize, ...]] = _of(
        "The values of `preferred_batch_sizes` of dynamic batching to compare. Each value is a"
        " list: [[], [4, 8]] compares no preferred sizes with the preferred sizes 4 and 8. In each"
        " setting, all tenants have the same sizes."
    )
    intra_op_threads: Values[Threads] = _of(
        "The numbers of threads of one inference to compare. In each setting, all tenants have the"
        " same number."
    )

    @property
    def lists(self) -> dict[str, tuple[Value, ...]]:
        """The keys that Perseus varies, each with its list of values."""
        return {key: values for key, values in self if values}


class AtMost(Part):
    """Upper limits that a recommended setting must not exceed, in addition to the SLA. If the user
    edits the limits, Perseus repeats no measurement."""

    p95_ms: Bound | None = Field(
        default=None,
        description=(
            "The largest allowed 95th percentile of the latency of each tenant at the certified"
            " rate, in milliseconds."
        ),
    )
    relative_error: Bound | None = Field(
        default=None,
        description=(
            "The largest relative error that the responses may have, for example in bf16. The"
            " relative error is the largest difference between a response and the fp32 response to"
            " the same request, divided by the standard deviation of the fp32 responses to"
            " different images (docs/evidence/exports.md)."
        ),
    )
    joules_per_inference: Bound | None = Field(
        default=None,
        description=(
            "The largest energy that one inference may need at the certified rate, in joules. The"
            " energy counters of GPUs and processors measure this energy."
        ),
    )

    @property
    def given(self) -> dict[str, float]:
        """The configured limits. Each limit applies to the column of the table `grid` that has the
        name of the limit."""
        return {key: float(value) for key, value in self if value is not None}


class Grid(Part):
    """Keys of servers and tenants that Perseus varies. A setting is one value for each key. Perseus
    measures the scenario with each setting."""

    vary: Vary = Field(
        description="The keys that Perseus varies, each with the list of its values.",
        examples=[{"instances": [1, 2]}],
    )
    design: Literal["full", "one_at_a_time"] = Field(
        default="full",
        description=(
            "The settings that Perseus measures. `full`: every combination of the values in the"
            " lists. `one_at_a_time`: the setting with the first value of each list, and every"
            " setting that differs from the first setting in exactly one key."
        ),
    )
    at_most: AtMost = Field(
        default=AtMost(),
        description="Upper limits that a recommended setting must not exceed, besides the SLA.",
    )

    @property
    def size(self) -> int:
        """Number of settings that Perseus measures on each server of the scenario."""
        lengths = [len(values) for values in self.vary.lists.values()]
        if self.design == "full":
            return math.prod(lengths)
        return 1 + sum(length - 1 for length in lengths)

    def settings(self) -> Iterator[Setting]:
        """Yield all settings of the grid; the first setting has the first value of each list."""
        lists = self.vary.lists
        if self.design == "full":
            for values in itertools.product(*lists.values()):
                yield dict(zip(lists, values, strict=True))
            return
        base = {key: values[0] for key, values in lists.items()}
        yield base
        for key, values in lists.items():
            yield from ({**base, key: value} for value in values[1:])
