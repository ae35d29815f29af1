"""Find what differs between two studies apart from the results: hosts, versions, configurations and
prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from perseus.report import hosts
from perseus.results.compare.source import Source
from perseus.results.records import Record

Change = tuple[str, str, str]
"""Name of a fact that differs, its value in the base study, and its value in the new study."""

PRICE = "price of "

NAMES = ("study", "cell", "scenario", "repeat")
"""Keys in the task of a cell that identify the cell. All other keys are settings."""


def changes(base: Source, new: Source) -> list[Change]:
    """Return the differences in hosts, software, settings, neural networks and prices.

    Settings are compared between the cells that both studies have.
    """
    return [
        *hosts.changes(base.records, new.records),
        *dict.fromkeys(_settings_changed(base, new)),
        *_differences(_networks(base.checks), _networks(new.checks)),
        *_differences(_prices(base.tables["costs"]), _prices(new.tables["costs"])),
    ]


def _settings_changed(base: Source, new: Source) -> Iterator[Change]:
    others = {record.folder.name: record for record in new.records}
    for record in base.records:
        if record.folder.name in others:
            yield from _differences(_settings(record), _settings(others[record.folder.name]))


def _differences(base: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    """Yield the facts that both studies state, but with different values."""
    for what, value in base.items():
        if what in new and new[what] != value:
            yield what, value, new[what]


def _settings(record: Record) -> dict[str, str]:
    """Return all settings of a cell by name, for example "cores of cpu1".

    The name of a setting contains its key, and the server, tenant or preset to which the setting
    belongs.
    """
    task = {key: value for key, value in record.task.plain().items() if key not in NAMES}
    server, preset = task.pop("server"), task["preset"]
    found = {f"{key} of {server['name']}": value for key, value in _flat(server)}
    for tenant in task.pop("tenants"):
        found |= {f"{key} of {tenant['name']}": value for key, value in _flat(tenant)}
    found |= {f"{key} of preset {preset}": value for key, value in _flat(task.pop("search"))}
    return found | dict(_flat(task))


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, part in value.items():
        if isinstance(part, Mapping):
            yield from _flat(part, f"{above}{key}.")
        else:
            yield f"{above}{key}", "none" if part is None else str(part)


def _networks(checks: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Describe the neural network of each exported model: architecture, weights, and the first
    digits of the hash of its file."""
    built = ("architecture", "weights", "seed")
    found = {}
    for model, check in checks.items():
        if "sha256" in check:
            facts = [f"{key} {check[key]}" for key in built if key in check]
            found[f"network of {model}"] = ", ".join([*facts, f"file {check['sha256'][:12]}"])
    return found


def _prices(costs: pd.DataFrame) -> dict[str, str]:
    """Return the price of each server as text, by server and pricing (on demand or spot)."""
    return {
        f"{PRICE}{row['server']}, {row['pricing'].replace('_', '-')}": (
            f"{row['usd_per_hour']:g} USD/h ({row['instance']} in {row['region']})"
        )
        for row in costs.to_dict("records")
    }
