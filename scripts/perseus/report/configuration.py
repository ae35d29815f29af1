"""Make the tables that show the configuration of a study, with one column for each key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from perseus.report.shown_tables import MAX_ROWS, Entry, Row, ShownTable
from perseus.results.records import Record, ServedModelRecord
from perseus.study.base import Part
from perseus.study.model import Model
from perseus.study.tasks.report import ReportTask

NONE = Entry("\N{EN DASH}")


def tables(task: ReportTask, records: Sequence[Record]) -> Iterator[ShownTable]:
    """Yield one table for each part of the configuration. If servers already had models before the
    study, yield a table of these models, too."""
    batches = _max_batch_sizes(records)
    rows = {
        "Models": [_keys(model) | _no_keys_of_others(model) for model in task.models],
        "Tenants": [_keys(tenant) | batches.get(tenant.name, {}) for tenant in task.tenants],
        "Servers": list(map(_keys, task.servers)),
        "Measurement": [_keys(task.measurement)],
        "Demand": [_keys(task.demand)] if task.demand else [],
    }
    for title, each in rows.items():
        if each:
            yield _settings(title, each)
    if served := _served(records):
        yield _served_models(served)


def _max_batch_sizes(records: Sequence[Record]) -> dict[str, Row]:
    """Return the largest batch size that the server accepts, by tenant. This batch size replaces
    the configured batch size in the table, since a server may accept only smaller batches."""
    found: dict[str, set[int]] = {}
    for record in records:
        for tenant, size in record.max_batch_sizes.items():
            found.setdefault(tenant, set()).add(size)
    return {
        tenant: {"max_batch_size": " or ".join(map(str, sorted(sizes)))}
        for tenant, sizes in found.items()
    }


def _keys(part: Part) -> Row:
    return part.model_dump(mode="json")


def _no_keys_of_others(model: Model) -> Row:
    """Return a row with the value None for each key that does not apply to `model`, for example
    `architecture` for an ONNX file. The table shows no value for such a key."""
    others = {
        "architecture": model.is_built,
        "weights": model.is_built,
        **dict.fromkeys(("scale", "mean", "std"), bool(model.images) and not model.is_built),
        "request": model.is_classifier,
        "deterministic": not model.is_built,
        "precision": not model.is_served,
    }
    return {key: None for key, applies in others.items() if not applies}


def _settings(title: str, rows: Sequence[Row]) -> ShownTable:
    """Return a table with one row for each part of the configuration, for example a model, and one
    column for each key that has a value."""
    keys = [key for key in rows[0] if any(_is_given(row[key]) for row in rows)]
    return ShownTable(
        title=title,
        note="",
        columns=tuple(keys),
        rows=[[_value(row[key]) for key in keys] for row in rows[:MAX_ROWS]],
        total=len(rows),
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
    """Return each model that a server already had before the study, as (server, model). If a model
    changed during the study, each of its versions is in the result."""
    return list(
        dict.fromkeys(
            (record.task.server.name, model)
            for record in records
            for model in record.served_models.values()
        )
    )


def _served_models(served: Sequence[tuple[str, ServedModelRecord]]) -> ShownTable:
    return ShownTable(
        title="Models that the servers already had",
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
    """Return each preset of the study: its name, its settings of the search, and its scenarios."""
    found: dict[str, Row] = {}
    for task in (record.task for record in records):
        if task.preset not in found:
            search = json.dumps(task.plain()["search"], indent=1)
            found[task.preset] = {"name": task.preset, "search": search, "scenarios": {}}
        found[task.preset]["scenarios"][task.scenario] = None
    return list(found.values())
