"""Read windows of many cells from windows.parquet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from perseus.measurement.raw_results import WINDOWS_SCHEMA
from perseus.peak.window import Phase
from perseus.results.records import PeakRecord, Row


def certified(records: Sequence[PeakRecord]) -> dict[Path, list[Row]]:
    """For the folder of each cell, return the rows of two kinds of windows: the last certification
    window that passed, and the windows in which one tenant is alone.

    The windows are in the order of windows.parquet. If the search of a cell certified no rate, the
    list of the cell is empty.
    """

    def wanted(windows: pa.Table, record: PeakRecord) -> pa.ChunkedArray:
        own = pc.equal(windows["window"], record.certified_window)
        return pc.or_(own, pc.equal(windows["phase"], Phase.ALONE))

    return {
        record.folder: _read(record, wanted, WINDOWS_SCHEMA.names)
        if record.certified_window >= 0
        else []
        for record in records
    }


def of_speed(records: Sequence[PeakRecord]) -> dict[Path, list[Row]]:
    """For the folder of each cell, return the windows of its saturation probes: the index of the
    window, the tenant, the number of requests and the start time.

    The probes are in the order of windows.parquet.
    """

    def wanted(windows: pa.Table, _: PeakRecord) -> pa.ChunkedArray:
        return pc.equal(windows["phase"], Phase.PROBE)

    return {
        record.folder: _read(record, wanted, ("window", "tenant", "requests", "start_ns"))
        for record in records
    }


def _read(
    record: PeakRecord,
    wanted: Callable[[pa.Table, PeakRecord], pa.ChunkedArray],
    columns: Sequence[str],
) -> list[Row]:
    """Read the rows of windows.parquet that `wanted` selects, for the attempt that the record
    describes. If the file lacks a column, the value is None.

    The function uses `ParquetFile`: `pyarrow.dataset` and `read_table` need 1.5 times as much time
    for a small file.
    """
    with pq.ParquetFile(record.folder / "windows.parquet") as file:
        windows = file.read([*columns, "attempt", "phase"], use_threads=False)
    mine = pc.and_(wanted(windows, record), pc.equal(windows["attempt"], record.attempt))
    return [{name: row.get(name) for name in columns} for row in windows.filter(mine).to_pylist()]
