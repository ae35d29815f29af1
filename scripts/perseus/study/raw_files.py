"""Define the names of the files in the folder of raw results of a cell.

These names are not in the module `files`, which imports all kinds of experiments: a measurement
depends only on the code of its own kind.
"""

from __future__ import annotations

from typing import Final

RECORD: Final = "record.json"
RAW: Final = ("requests.parquet", "windows.parquet", "monitor.parquet", RECORD, "server.log")
