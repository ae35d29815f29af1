"""Summarise the dates, hosts and software of the cells, and their differences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from perseus.results.records import Record

SHOWN = (
    "cpu",
    "cpus",
    "cpu_quota_cores",
    "memory_bytes",
    "kernel",
    "python",
    "packages",
    "server_cores",
    "client_cores",
)
"""Keys of the facts of a host that the report shows."""

LABELS = {
    "cpu": "processor",
    "cpus": "CPUs",
    "cpu_quota_cores": "CPU quota in cores",
    "memory_bytes": "bytes of memory",
    "cpu_governor": "CPU frequency governor",
    "client_realtime": "clients scheduled before ordinary processes",
}


def hosts(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the different hosts on which the cells ran, each with its number of cells.

    Two hosts count as different if a fact that the report shows (SHOWN) differs.
    """
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        shown = json.dumps({name: record.host.get(name) for name in SHOWN}, sort_keys=True)
        entry = found.setdefault(shown, {"host": record.host, "cells": 0})
        entry["cells"] += 1
    return list(found.values())


def days(records: Sequence[Record]) -> str:
    """Return the days (UTC) of the first and the last cell as text, such as "2026-11-28 to
    2026-11-29", or a single day."""
    starts = [record.started.unix_ns / 1e9 for record in records]
    ends = [datetime.fromtimestamp(s, UTC).strftime("%Y-%m-%d") for s in (min(starts), max(starts))]
    return " to ".join(dict.fromkeys(ends))


def differences(records: Sequence[Record]) -> list[str]:
    """Return the facts about host and software that should be the same in all cells but differ,
    each with its values.

    The function compares the software of a server only between cells of the same server. The
    function ignores cells in which a fact is unknown, for example because no client ran.
    """
    values = _values(records)
    return [f"{what} {' or '.join(seen)}" for what, seen in values.items() if len(seen) > 1]


def without_statistics(records: Sequence[Record]) -> list[str]:
    """Return the servers that report no queue times and compute times, with their software."""
    found = (
        f"{record.task.server.name} ({record.software} {record.triton_version})"
        for record in records
        if not record.tells_statistics
    )
    return list(dict.fromkeys(found))


def changes(base: Sequence[Record], new: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Return the facts about hosts and software that differ between two studies, each with its
    values in both studies. A fact that only one study has counts as different."""
    before, after = _values(base), _values(new)
    found = []
    for what in dict.fromkeys([*before, *after]):
        values = [of.get(what, {"none or unknown": None}) for of in (before, after)]
        if values[0].keys() != values[1].keys():
            found.append((what, " or ".join(values[0]), " or ".join(values[1])))
    return found


def _values(records: Sequence[Record]) -> dict[str, dict[str, None]]:
    """Return the different known values of each fact about host and software, in the order of their
    first appearance."""
    values: dict[str, dict[str, None]] = {}
    for record in records:
        for what, value in _facts(record):
            if value is not None:
                values.setdefault(what, {})[str(value)] = None
    return values


def _facts(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield the facts about the host and the software of a record. The cores of server and client
    are left out, since they may differ between the cells of a study."""
    host, server = record.host, record.task.server.name
    for name, label in LABELS.items():
        yield label, host.get(name)
    yield from (("kernel", host.get("kernel")), ("Python", host.get("python")))
    yield from host.get("packages", {}).items()
    yield f"{record.software} of {server}", record.triton_version
    yield f"image of {server}", record.image_id
    for served in record.served_models.values():
        told = f"version {served.version} with configuration {served.config_sha256[:12]}"
        yield f"{served.name} of {server}", told
    for name in ("driver", "cuda", "mps", "gpus"):
        yield f"GPU ({name}) of {server}", (host.get("gpu") or {}).get(name)
