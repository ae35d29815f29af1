"""The configuration of a study as tables, by its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from perseus.report.shown_tables import MAX_ROWS, Entry, Row, ShownTable
from perseus.results.records import Record, ServedModelRecord
from perseus.study.base import Part
from perseus.study.tasks.report import ReportTask

NONE = Entry("\N{EN DASH}")


def tables(task: ReportTask, records: Sequence[Record]) -> Iterator[ShownTable]:
    """Tables of models, tenants, servers and measurement, and of models that servers already
    had."""
    parts = {
        "Models": task.models,
        "Tenants": task.tenants,
        "Servers": task.servers,
        "Measurement": (task.measurement,),
        "Demand": (task.demand,) if task.demand else (),
    }
    for title, each in parts.items():
        if each:
            yield _settings(title, each)
    if served := _served(records):
        yield _served_models(served)


def _settings(title: str, parts: Sequence[Part]) -> ShownTable:
    """One row for each part, one column for each key with a value."""
    rows = [part.model_dump(mode="json") for part in parts[:MAX_ROWS]]
    keys = [key for key in rows[0] if any(_is_given(row[key]) for row in rows)]
    return ShownTable(
        title=title,
        note="",
        columns=tuple(keys),
        rows=[[_value(row[key]) for key in keys] for row in rows],
        total=len(parts),
    )


def _is_given(value: Any) -> bool:
    return value is not None and value not in ([], {})


def _value(value: Any) -> Entry:
    return Entry(_value_text(value)) if _is_given(value) else NONE


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            f"{key} {_value_text(each)}" for key, each in value.items() if _is_given(each)
        )
    if isinstance(value, list):
        return ", ".join(map(_value_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _served(records: Sequence[Record]) -> list[tuple[str, ServedModelRecord]]:
    """Servers with their own models; several rows if these changed."""
    return list(
        dict.fromkeys(
            (record.task.server.name, model)
            for record in records
            for model in record.served_models.values()
        )
    )


def _served_models(served: Sequence[tuple[str, ServedModelRecord]]) -> ShownTable:
    return ShownTable(
        title="Models that their server had of its own",
        note="",
        columns=(
            "server",
            "model",
            "version",
            "backend",
            "largest batch",
            "SHA-256 of its configuration",
        ),
        rows=[
            [
                *map(Entry, (server, model.name, model.version, model.backend)),
                Entry(str(model.max_batch_size or "none")),
                Entry(model.config_sha256),
            ]
            for server, model in served[:MAX_ROWS]
        ],
        total=len(served),
    )


def presets(records: Sequence[Record]) -> list[Row]:
    """Each preset with its search settings, and its scenarios."""
    found: dict[str, Row] = {}
    for task in (record.task for record in records):
        if task.preset not in found:
            search = json.dumps(task.plain()["search"], indent=1)
            found[task.preset] = {"name": task.preset, "search": search, "scenarios": {}}
        found[task.preset]["scenarios"][task.scenario] = None
    return list(found.values())
