"""Define the names of the files in the folder with the raw results of a cell.

The code that measures cells must not import the module `files`, which imports all kinds of
experiments. Otherwise, an edit of the code of one kind of experiment would repeat the measurements
of all kinds.
"""

from __future__ import annotations

from typing import Final

RECORD: Final = "record.json"
RAW: Final = ("requests.parquet", "windows.parquet", "monitor.parquet", RECORD, "server.log")
