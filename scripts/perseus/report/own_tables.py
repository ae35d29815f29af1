"""Make the tables of experiments, grids and fleets. For each of these tables, a module in
`perseus.results.tables` defines the title, the note and the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from perseus.report.evidence import PageEvidence
from perseus.report.links import line_id
from perseus.report.numbers import significant
from perseus.report.shown_tables import MAX_ROWS, Entry, Row, ShownTable, entry_of, shares_of
from perseus.results.tables import module_of as table_module


def sections(
    names: Sequence[str], rows: Mapping[str, list[Row]], evidence: PageEvidence
) -> Iterator[ShownTable]:
    """Yield the tables `names` that have rows and whose modules have a TITLE. Columns without any
    value are left out."""
    lines = {line_id(row) for row in rows["peaks"][:MAX_ROWS]}
    for name in names:
        module, mine = table_module(name), rows.get(name, [])
        if not (hasattr(module, "TITLE") and mine):
            continue
        shares = shares_of(module.SCHEMA.arrow)
        columns = {
            heading: [_linked(row, columns, shares, lines, evidence) for row in mine[:MAX_ROWS]]
            for heading, columns in module.SHOWN.items()
        }
        kept = {title: each for title, each in columns.items() if any(map(_is_told, each))}
        yield ShownTable(
            title=module.TITLE,
            note=module.NOTE,
            columns=tuple(kept),
            rows=list(zip(*kept.values(), strict=True)),
            total=len(mine),
            file=name,
        )


def _is_told(entry: Entry) -> bool:
    return entry.text not in ("", significant(None))


def _linked(
    row: Row,
    columns: str | Sequence[str],
    shares: frozenset[str],
    lines: Set[str],
    evidence: PageEvidence,
) -> Entry:
    """Return the entry for a value of a row. A cell has a link to its section of the page, and a
    mix has a link to its row in the table of peaks. If the page does not show this section or row,
    there is no link."""
    entry = entry_of(row, columns, shares)
    if columns == "cell":
        return entry.to(evidence.link(str(row["cell"])))
    of_line = columns == "mix" and "scenario" in row and line_id(row) in lines
    return entry.to(line_id(row)) if of_line else entry
