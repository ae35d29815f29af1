"""A setting of a grid: one value for each varied key; its form in names and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Value = str | int | tuple[int, ...]
Setting = Mapping[str, Value]

MARK: Final = "~"
"""Separates the name of a variant from that of the configuration, which cannot contain it."""

SHORT: Final = {
    "max_batch_size": "batch",
    "max_queue_delay_us": "delay_us",
    "preferred_batch_sizes": "preferred",
    "intra_op_threads": "threads",
}
"""Short forms of long keys in names."""


def suffix(setting: Setting) -> str:
    """Return the suffix of names, such as ~runtime-openvino~instances-2; empty for no setting."""
    return "".join(f"{MARK}{_word(key)}-{text(value)}" for key, value in setting.items())


def describe(setting: Setting) -> str:
    """Return the text, such as "runtime openvino, instances 2"."""
    return ", ".join(f"{_word(key)} {text(value)}" for key, value in setting.items())


def text(value: Value) -> str:
    """Return the text of a value: 4-8 for a list, "none" for an empty one."""
    return ("-".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)


def configured(name: str) -> str:
    """Return the name in the configuration that a name or variant name stands for."""
    return name.partition(MARK)[0]


def is_variant(name: str) -> bool:
    """Return whether a name is that of a variant."""
    return MARK in name


def of_ceiling(server: str) -> str:
    """Return the name of the client's ceiling beside a server; runtimes share it, since the ceiling
    uses a null model."""
    name, *parts = server.split(MARK)
    return MARK.join([name, *(part for part in parts if not part.startswith("runtime-"))])


def _word(key: str) -> str:
    return SHORT.get(key, key)
