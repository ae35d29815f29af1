"""Files in the folder of a cell's raw results.

They are not in `files`, which imports all kinds of experiments: a measurement depends only on its
own kind.
"""

from __future__ import annotations

from typing import Final

RECORD: Final = "record.json"
RAW: Final = ("requests.parquet", "windows.parquet", "monitor.parquet", RECORD, "server.log")
