"""A setting of a grid: a value for each key that is varied; how it stands in names and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Value = str | int | tuple[int, ...]
Setting = Mapping[str, Value]

MARK: Final = "~"
"""Begins what the name of a variant has behind that of the configuration, where it may not be."""

SHORT: Final = {
    "max_batch_size": "batch",
    "max_queue_delay_us": "delay_us",
    "preferred_batch_sizes": "preferred",
    "intra_op_threads": "threads",
}
"""Of keys with which names would grow too long."""


def suffix(setting: Setting) -> str:
    """~runtime-openvino~instances-2; nothing where nothing is set."""
    return "".join(f"{MARK}{_word(key)}-{text(value)}" for key, value in setting.items())


def in_words(setting: Setting) -> str:
    """runtime openvino, instances 2"""
    return ", ".join(f"{_word(key)} {text(value)}" for key, value in setting.items())


def text(value: Value) -> str:
    """4-8 of a list, "none" of an empty one."""
    return ("-".join(map(str, value)) or "none") if isinstance(value, tuple) else str(value)


def configured(name: str) -> str:
    """The name in the configuration, of which this one is a variant or the same."""
    return name.partition(MARK)[0]


def is_variant(name: str) -> bool:
    """Whether a server, a tenant or a scenario has another setting than in the configuration."""
    return MARK in name


def of_ceiling(server: str) -> str:
    """The name of the client's ceiling beside a server, whatever its runtime: a model that answers
    at once is served there."""
    name, *parts = server.split(MARK)
    return MARK.join([name, *(part for part in parts if not part.startswith("runtime-"))])


def _word(key: str) -> str:
    return SHORT.get(key, key)
