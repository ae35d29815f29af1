"""One HTML file that answers the question of a study first, then shows the evidence."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from perseus.host.files import whole
from perseus.report.answer import answers
from perseus.report.figures import FIGURES, module_of
from perseus.report.hosts import differences, hosts
from perseus.report.numbers import bounds, chance, percent, significant
from perseus.report.recommended import recommended
from perseus.report.to_buy import to_buy
from perseus.results.records import Record, ServedModelRecord
from perseus.results.tables import TABLES
from perseus.results.tables import module_of as table_module
from perseus.study.tasks.measure import MeasuredServer, MeasuredTenant

Row = dict[str, Any]


def write(
    tables: Mapping[str, Path], drawn: Sequence[Path], records: Sequence[Path], path: Path
) -> None:
    """Write the report from the tables (by name), the SVG figures and the records of all cells."""
    frames = {name: pd.read_parquet(file) for name, file in tables.items()}
    loaded = [Record.read(file.parent) for file in records]
    html = render(frames, {file.stem: file.read_bytes() for file in drawn}, loaded)
    with whole(path) as partial:
        partial.write_text(html, encoding="utf-8")


def render(
    tables: Mapping[str, pd.DataFrame], drawn: Mapping[str, bytes], records: Sequence[Record]
) -> str:
    """The HTML; everything from the data is escaped, each figure is an image of its own."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        significant=significant,
        percent=_percent,
        chance=_chance,
        span=_span,
        range=_range,
        whole=_whole,
        shown=_shown,
    )
    task = records[0].task
    return environment.get_template("page.html").render(
        task=task,
        measured=_when(records),
        answers=[
            *to_buy(tables),
            *recommended(tables["recommendations"]),
            *answers(tables["peaks"], tables["costs"], tables["savings"]),
        ],
        tables={name: _rows(frame) for name, frame in tables.items()},
        sections=list(_sections(tables)),
        figures=[
            {
                "name": name,
                "data": base64.b64encode(drawn[name]).decode(),
                "caption": module_of(name).CAPTION,
            }
            for name in FIGURES
            if name in drawn
        ],
        records=records,
        failures=[record for record in records if record.outcome != "ok"],
        cells=len(records),
        hosts=hosts(records),
        differences=differences(records),
        tenants=_tenants(records),
        servers=_servers(records),
        sources=sorted(set(tables["costs"]["price_source"])),
        served=_served(records),
        presets=_presets(records),
    )


def _sections(tables: Mapping[str, pd.DataFrame]) -> Iterator[Row]:
    """What the page shows of tables that say how: of grids, and of kinds of experiments."""
    for name in TABLES:
        module = table_module(name)
        if hasattr(module, "TITLE") and len(tables.get(name, ())):
            yield {
                "title": module.TITLE,
                "description": module.NOTE,
                "columns": module.SHOWN,
                "rows": _rows(tables[name]),
            }


def _shown(row: Row, columns: str | Sequence[str]) -> str:
    """A column's value, or one with the interval of the other two."""
    if not isinstance(columns, str):
        return _span(row, columns)
    value = row[columns]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value) if isinstance(value, float) or value is None else str(value)


def _rows(frame: pd.DataFrame) -> list[Row]:
    """Rows as dictionaries with None for what is missing."""
    return [
        {str(key): None if pd.isna(value) else value for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _when(records: Sequence[Record]) -> str:
    """The days (UTC) on which the cells were measured."""
    starts = [record.started.unix_ns / 1e9 for record in records]
    ends = [datetime.fromtimestamp(s, UTC).strftime("%Y-%m-%d") for s in (min(starts), max(starts))]
    return " to ".join(dict.fromkeys(ends))


def _tenants(records: Sequence[Record]) -> list[MeasuredTenant]:
    tenants = [tenant for record in records for tenant in record.task.tenants]
    return list({tenant.name: tenant for tenant in tenants}.values())


def _servers(records: Sequence[Record]) -> list[MeasuredServer]:
    return list({r.task.server.name: r.task.server for r in records}.values())


def _served(records: Sequence[Record]) -> list[tuple[str, ServedModelRecord]]:
    """Servers with what they had of their own: more than once, where it has changed."""
    return list(
        dict.fromkeys(
            (record.task.server.name, model)
            for record in records
            for model in record.served_models.values()
        )
    )


def _presets(records: Sequence[Record]) -> list[Row]:
    """Each with its search, and the scenarios that were measured with it."""
    found: dict[str, Row] = {}
    for task in (record.task for record in records):
        if task.preset not in found:
            search = json.dumps(task.plain()["search"], indent=1)
            found[task.preset] = {"name": task.preset, "search": search, "scenarios": {}}
        found[task.preset]["scenarios"][task.scenario] = None
    return list(found.values())


def _percent(share: float | None) -> str:
    return significant(None) if share is None else percent(share)


def _chance(probability: float | None) -> str:
    return significant(None) if probability is None else chance(probability)


def _span(row: Row, names: Sequence[str], scale: str = "significant") -> str:
    """ "12.3 (11.9 to 12.8)": the first of three columns with the interval of the other two."""
    write = significant if scale == "significant" else _percent
    value, *ends = (row[name] for name in names)
    if value is None or None in ends:
        return write(value)
    return f"{write(value)} ({_range(row, names[1:], scale)})"


def _range(row: Row, names: Sequence[str], scale: str = "significant") -> str:
    """ "11.9 to 12.8" from two columns; an end that bounds nothing is left out."""
    write = significant if scale == "significant" else _percent
    low, high = (row[name] for name in names)
    if low is None or high is None:
        return write(None)
    is_positive = scale == "significant" and high > 0  # so that 0 bounds nothing
    return bounds(-math.inf if is_positive and low == 0 else low, high, write)


def _whole(count: float | None) -> str:
    return significant(None) if count is None else f"{count:.0f}"
