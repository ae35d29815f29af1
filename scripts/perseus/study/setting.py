"""Format a setting of a grid (one value for each key that varies) as text, and as a suffix of the
names of scenarios, servers and tenants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Value = str | int | tuple[int, ...]
Setting = Mapping[str, Value]

MARK: Final = "~"
"""In the names of scenarios, servers and tenants, this character stands before each key of a
setting. A name in the configuration cannot contain this character."""

SHORT: Final = {
    "max_batch_size": "batch",
    "max_queue_delay_us": "delay_us",
    "preferred_batch_sizes": "preferred",
    "intra_op_threads": "threads",
}
"""Short forms of long keys, for names of scenarios, servers and tenants."""


def suffix(setting: Setting) -> str:
    """Return the suffix for the names of scenarios, servers and tenants with this setting, such as
    `~runtime-openvino~instances-2`; empty for an empty setting."""
    return "".join(f"{MARK}{_word(key)}-{text(value)}" for key, value in setting.items())


def describe(setting: Setting) -> str:
    """Return a setting as text, such as "runtime openvino, instances 2"."""
    return ", ".join(f"{_word(key)} {text(value)}" for key, value in setting.items())


def text(value: Value) -> str:
    """Return a value of a setting as text, such as "4-8" for the list [4, 8] and "none" for an
    empty list."""
    return ("-".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)


def configured(name: str) -> str:
    """Return a name without the suffix for a setting of a grid, as in the configuration."""
    return name.partition(MARK)[0]


def is_variant(name: str) -> bool:
    """Return whether a name has the suffix for a setting of a grid."""
    return MARK in name


def of_ceiling(server: str) -> str:
    """Return the name of the measurement of a server's client ceiling.

    The measurement uses a null model (a model that does no work) in place of a network. Therefore,
    servers that differ only in their runtime share one measurement.
    """
    name, *parts = server.split(MARK)
    return MARK.join([name, *(part for part in parts if not part.startswith("runtime-"))])


def _word(key: str) -> str:
    return SHORT.get(key, key)
