"""A grid: settings of a scenario that are varied, in all combinations or one at a time."""

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
    Field(description="`none`, or microseconds that a request may wait for others"),
]
Bound = Annotated[Real, Field(gt=0)]

T = TypeVar("T")
Values = Annotated[tuple[T, ...], Field(min_length=1), Different]


def _of(what: str) -> Any:
    """Return an optional list of values."""
    return Field(default=(), description=what, json_schema_extra={"uniqueItems": True})


class Vary(Part):
    """Lists of values; keys that are left out stay as the scenario has them."""

    runtime: Values[RuntimeName] = _of("Of the servers.")
    cores: Values[Cores] = _of(
        "Of the servers: a smaller or larger machine, at the instance's price in proportion."
        " Values above the number of cores of this machine are left out."
    )
    precision: Values[Precision] = _of("Of all tenants.")
    instances: Values[Instances] = _of("Of all tenants.")
    max_batch_size: Values[LargestBatch] = _of("Of all tenants.")
    max_queue_delay_us: Values[Delay] = _of(
        "Of all tenants: `none`, without dynamic batching, or how long a request may wait for"
        " others."
    )
    preferred_batch_sizes: Values[tuple[BatchSize, ...]] = _of(
        "Of all tenants, with dynamic batching: lists such as [[], [4, 8]]."
    )
    intra_op_threads: Values[Threads] = _of("Of all tenants.")

    @property
    def lists(self) -> dict[str, tuple[Value, ...]]:
        """Values of the varied keys."""
        return {key: values for key, values in self if values}


class AtMost(Part):
    """Bounds besides the SLA that a recommended setting must keep. A change never re-measures."""

    p95_ms: Bound | None = Field(
        default=None, description="p95 of every tenant at the certified rate, in milliseconds."
    )
    relative_error: Bound | None = Field(
        default=None,
        description=(
            "Loss of accuracy: relative error of the served answers against the network in fp32,"
            " as a share of their variation between images (docs/evidence/exports.md)."
        ),
    )
    joules_per_inference: Bound | None = Field(
        default=None,
        description="Energy of an inference at that rate, by the counters of GPUs and processors.",
    )

    @property
    def given(self) -> dict[str, float]:
        """The given bounds, by column of the table `grid`."""
        return {key: float(value) for key, value in self if value is not None}


class Grid(Part):
    """Variants of a scenario, each measured like the scenario itself."""

    vary: Vary = Field(
        description="The keys to vary, and the values of each.", examples=[{"instances": [1, 2]}]
    )
    design: Literal["full", "one_at_a_time"] = Field(
        default="full",
        description=(
            "`full` measures every combination. `one_at_a_time` measures the first values of all"
            " lists together, and each other value with the first values of the other lists."
        ),
    )
    at_most: AtMost = Field(
        default=AtMost(), description="Limits that a recommended setting must keep."
    )

    @property
    def size(self) -> int:
        """Number of settings on each server."""
        lengths = [len(values) for values in self.vary.lists.values()]
        if self.design == "full":
            return math.prod(lengths)
        return 1 + sum(length - 1 for length in lengths)

    def settings(self) -> Iterator[Setting]:
        """Yield all settings; the first has the first value of each list."""
        lists = self.vary.lists
        if self.design == "full":
            for values in itertools.product(*lists.values()):
                yield dict(zip(lists, values, strict=True))
            return
        base = {key: values[0] for key, values in lists.items()}
        yield base
        for key, values in lists.items():
            yield from ({**base, key: value} for value in values[1:])
