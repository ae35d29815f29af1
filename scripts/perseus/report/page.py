"""One HTML file that answers the question of a study first, then shows the evidence."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from perseus.host.files import whole
from perseus.report.answer import answers, chance, figures, percent

CAPTIONS = {
    "peaks": "A shared bar that ends right of its vertical tick carries more than dedicated servers"
    " would for the same money.",
    "frontier": "Points beyond the dashed line are rates that only a shared server reaches at this"
    " cost.",
    "costs": "A shared line is worth its while where its dot lies left of its vertical tick.",
    "latency_by_rate": "Each mark is one window; latency should cross the SLA near the estimate and"
    " stay below it left of the certified rate.",
    "latency_ecdf": "A curve that passes above its cross keeps the SLA.",
    "utilisation": "The server should be busy and the client idle; a busy client would limit what"
    " was measured.",
    "concurrency": "Closed loops: where a curve turns up, more requests in flight only wait. A"
    " white mark is a level at which the client or the host, not the server, may have limited.",
    "ceilings": "Peaks far left of the client's ceiling are those of the server, not of the client."
    " The ceiling is that of one tenant's requests to a model that answers at once.",
}
"""What each figure lets one see."""

Row = dict[str, Any]


def write(
    tables: Mapping[str, Path], drawn: Sequence[Path], records: Sequence[Path], path: Path
) -> None:
    """Write the report from the tables (by name), the SVG figures and the records of all cells."""
    frames = {name: pd.read_parquet(file) for name, file in tables.items()}
    loaded = [json.loads(file.read_text()) for file in records]
    html = render(frames, {file.stem: file.read_bytes() for file in drawn}, loaded)
    with whole(path) as partial:
        partial.write_text(html, encoding="utf-8")


def render(
    tables: Mapping[str, pd.DataFrame], drawn: Mapping[str, bytes], records: Sequence[Row]
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
        figures=figures, percent=_percent, chance=_chance, span=_span, range=_range, whole=_whole
    )
    cell = records[0]["cell"]
    return environment.get_template("page.html").render(
        study=cell["study"],
        cell=cell,
        measured=_when(records),
        answers=answers(tables["peaks"], tables["costs"], tables["savings"], cell["precision"]),
        tables={name: _rows(frame) for name, frame in tables.items()},
        figures=[
            {
                "name": name,
                "data": base64.b64encode(drawn[name]).decode(),
                "caption": CAPTIONS[name],
            }
            for name in CAPTIONS
            if name in drawn
        ],
        failures=[record for record in records if record["outcome"] != "ok"],
        cells=len(records),
        hosts=_hosts(records),
        models=_models(records),
        servers=_servers(records),
        sources=sorted(set(tables["costs"]["price_source"])),
        settings=json.dumps(cell["settings"], indent=1, sort_keys=True),
    )


def _rows(frame: pd.DataFrame) -> list[Row]:
    """Rows as dictionaries with None for what is missing."""
    return [
        {str(key): None if pd.isna(value) else value for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _when(records: Sequence[Row]) -> str:
    """The days (UTC) on which the cells were measured."""
    starts = [record["started"]["unix_ns"] / 1e9 for record in records]
    ends = [datetime.fromtimestamp(s, UTC).strftime("%Y-%m-%d") for s in (min(starts), max(starts))]
    return " to ".join(dict.fromkeys(ends))


def _hosts(records: Sequence[Row]) -> list[Row]:
    """The different hosts and software that measured, with the number of cells of each."""
    found: dict[str, Row] = {}
    for record in records:
        host = record["host"]
        entry = found.setdefault(json.dumps(host, sort_keys=True), {"host": host, "cells": 0})
        entry["cells"] += 1
    return list(found.values())


def _models(records: Sequence[Row]) -> list[Row]:
    tenants = [tenant for record in records for tenant in record["cell"]["tenants"]]
    return list({tenant["name"]: tenant for tenant in tenants}.values())


def _servers(records: Sequence[Row]) -> list[Row]:
    return list({r["cell"]["server"]["name"]: r["cell"]["server"] for r in records}.values())


def _percent(share: float | None) -> str:
    return figures(None) if share is None else percent(share)


def _chance(probability: float | None) -> str:
    return figures(None) if probability is None else chance(probability)


def _span(row: Row, names: Sequence[str], scale: str = "figures") -> str:
    """ "12.3 (11.9 to 12.8)": the first of three columns with the interval of the other two."""
    write = figures if scale == "figures" else _percent
    value, *ends = (row[name] for name in names)
    if value is None or None in ends:
        return write(value)
    return f"{write(value)} ({_range(row, names[1:], scale)})"


def _range(row: Row, names: Sequence[str], scale: str = "figures") -> str:
    """ "11.9 to 12.8" from two columns; an end that bounds nothing is left out."""
    write = figures if scale == "figures" else _percent
    low, high = (row[name] for name in names)
    if low is None or high is None:
        return write(None)
    bounded_below = low != 0 or scale != "figures"
    if math.isinf(high):
        return f"at least {write(low)}" if bounded_below else "no bound"
    return f"{write(low)} to {write(high)}" if bounded_below else f"at most {write(high)}"


def _whole(count: float | None) -> str:
    return figures(None) if count is None else f"{count:.0f}"
