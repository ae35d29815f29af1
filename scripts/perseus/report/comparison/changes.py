"""Find what differs between two studies apart from the results: hosts, versions, configurations and
prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from perseus.report import hosts
from perseus.results.compare.source import Source
from perseus.study.tasks.measure import MeasureTask

Change = tuple[str, str, str]
"""Name of a fact that differs, its value in the base study, and its value in the new study."""

PRICE = "price of "

NONE = "none"
"""Value of a setting or a price that a study does not have."""

NAMES = ("study", "cell", "scenario", "repeat")
"""Keys of a task that identify its cell. All other keys of the task are settings."""


def changes(base: Source, new: Source) -> list[Change]:
    """Return the differences in hosts, software, settings, neural networks and prices.

    If the records of a study are missing, its hosts, software and settings are unknown, and the
    function does not compare them. The function compares settings only between cells that both
    studies have.
    """
    of_hosts = hosts.changes(base.records, new.records) if has_records(base, new) else []
    return [
        *of_hosts,
        *dict.fromkeys(_settings_changed(base, new)),
        *_differences(_networks(base.checks), _networks(new.checks)),
        *_differences(_prices(base.tables["costs"]), _prices(new.tables["costs"])),
    ]


def has_records(base: Source, new: Source) -> bool:
    return bool(base.records and new.records)


def _settings_changed(base: Source, new: Source) -> Iterator[Change]:
    others = {record.folder.name: record.task for record in new.records}
    for record in base.records:
        if other := others.get(record.folder.name):
            is_same = record.task.preset == other.preset
            yield from _differences(*(_settings(task, is_same) for task in (record.task, other)))


def _differences(base: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    """Yield the facts whose values differ. A fact that only one study has counts as different."""
    for what in dict.fromkeys([*base, *new]):
        values = base.get(what, NONE), new.get(what, NONE)
        if values[0] != values[1]:
            yield what, *values


def _settings(task: MeasureTask, with_preset: bool) -> dict[str, str]:
    """Return all settings of a cell by name, for example "cores of cpu1".

    The name of a setting contains its key, and the server, tenant or preset to which the setting
    belongs. If `with_preset` is false, the result has the name of the preset, but not its settings.
    """
    plain = {key: value for key, value in task.plain().items() if key not in NAMES}
    server, search = plain.pop("server"), plain.pop("search")
    found = {f"{key} of {server['name']}": value for key, value in _flat(server)}
    for tenant in plain.pop("tenants"):
        found |= {f"{key} of {tenant['name']}": value for key, value in _flat(tenant)}
    if with_preset:
        found |= {f"{key} of preset {task.preset}": value for key, value in _flat(search)}
    return found | dict(_flat(plain))


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, part in value.items():
        if isinstance(part, Mapping):
            yield from _flat(part, f"{above}{key}.")
        else:
            yield f"{above}{key}", NONE if part is None else str(part)


def _networks(checks: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return, for each exported model, a text that changes if the neural network changes:
    architecture, weights, and the first digits of the hash of the model file."""
    built = ("architecture", "weights", "seed")
    found = {}
    for model, check in checks.items():
        if "sha256" in check:
            facts = [f"{key} {check[key]}" for key in built if key in check]
            found[f"network of {model}"] = ", ".join([*facts, f"file {check['sha256'][:12]}"])
    return found


def _prices(costs: pd.DataFrame) -> dict[str, str]:
    """Return the price of each server as text, with the server and the pricing (on demand or spot)
    as keys."""
    return {
        f"{PRICE}{row['server']}, {row['pricing'].replace('_', '-')}": (
            f"{row['usd_per_hour']:g} USD/h ({row['instance']} in {row['region']})"
        )
        for row in costs.to_dict("records")
    }
