"""Define the names of the files in the folder of raw results of a cell.

The code that measures cells must not import these names from `files`, which imports all kinds of
experiments: an edit of one kind would then repeat the measurements of all kinds.
"""

from __future__ import annotations

from typing import Final

RECORD: Final = "record.json"
RAW: Final = ("requests.parquet", "windows.parquet", "monitor.parquet", RECORD, "server.log")
