"""Define a grid: settings of a scenario that Perseus varies, in all combinations or one at a
time."""

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
    """Return the pydantic field of an optional key with the description `what`."""
    return Field(default=(), description=what, json_schema_extra={"uniqueItems": True})


class Vary(Part):
    """The keys that Perseus varies, each with a list of values. A key without a list keeps the
    value of the scenario."""

    runtime: Values[RuntimeName] = _of("The runtimes to compare, for all servers of the scenario.")
    cores: Values[Cores] = _of(
        "The numbers of cores to compare, for all servers of the scenario. Perseus assumes that the"
        " price of a server is proportional to its number of cores. Perseus leaves out each number"
        " for which this machine has too few cores."
    )
    precision: Values[Precision] = _of("The numeric precisions to compare, for all tenants.")
    instances: Values[Instances] = _of(
        "The numbers of instances to compare. In each setting, all tenants have the same number."
    )
    max_batch_size: Values[LargestBatch] = _of("The largest batch sizes, for all tenants.")
    max_queue_delay_us: Values[Delay] = _of(
        "The delays of dynamic batching for all tenants: `none` (no dynamic batching), or the"
        " microseconds that a request may wait for other requests."
    )
    preferred_batch_sizes: Values[tuple[BatchSize, ...]] = _of(
        "The preferred batch sizes of dynamic batching, for all tenants. Each value is a list:"
        " [[], [4, 8]] compares two settings. The first setting has no preferred sizes, and the"
        " second setting has the preferred sizes 4 and 8."
    )
    intra_op_threads: Values[Threads] = _of(
        "The numbers of threads of one inference to compare, for all tenants."
    )

    @property
    def lists(self) -> dict[str, tuple[Value, ...]]:
        """The list of values of each key that Perseus varies."""
        return {key: values for key, values in self if values}


class AtMost(Part):
    """Upper limits that a recommended setting must not exceed, in addition to the SLA. A change of
    the limits never repeats a measurement."""

    p95_ms: Bound | None = Field(
        default=None,
        description=(
            "Largest allowed p95 latency of every tenant at the certified rate, in milliseconds."
        ),
    )
    relative_error: Bound | None = Field(
        default=None,
        description=(
            "Largest allowed relative error of the responses. The relative error is the largest"
            " difference between a response and the fp32 response to the same request, divided by"
            " the standard deviation of the fp32 responses to different images"
            " (docs/evidence/exports.md)."
        ),
    )
    joules_per_inference: Bound | None = Field(
        default=None,
        description=(
            "Largest allowed energy of one inference at the certified rate, in joules. The energy"
            " counters of GPUs and processors measure this energy."
        ),
    )

    @property
    def given(self) -> dict[str, float]:
        """The configured limits, by the column of the table `grid` to which each limit applies."""
        return {key: float(value) for key, value in self if value is not None}


class Grid(Part):
    """Settings of a scenario that Perseus varies. Perseus measures the scenario with each
    setting."""

    vary: Vary = Field(
        description=("The keys that Perseus varies, each with its list of values."),
        examples=[{"instances": [1, 2]}],
    )
    design: Literal["full", "one_at_a_time"] = Field(
        default="full",
        description=(
            "`full` measures every combination of the values in the lists. `one_at_a_time` measures"
            " the setting with the first value of each list, and then settings in which one key has"
            " another value of its list."
        ),
    )
    at_most: AtMost = Field(
        default=AtMost(),
        description="Upper limits that a recommended setting must not exceed.",
    )

    @property
    def size(self) -> int:
        """Number of settings of the grid on each server."""
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
