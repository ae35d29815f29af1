"""Files in the folder of a cell's raw results.

Not in `files`, which knows all kinds of experiments: a measurement depends on its own alone.
"""

from __future__ import annotations

from typing import Final

RECORD: Final = "record.json"
RAW: Final = ("requests.parquet", "windows.parquet", "monitor.parquet", RECORD, "server.log")
