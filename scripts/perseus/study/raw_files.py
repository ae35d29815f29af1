"""Define the names of the files in the folder of raw results of a cell.

The module `files` cannot define these names: it imports all kinds of experiments, but a measurement
must depend only on the code of its own kind.
"""

from __future__ import annotations

from typing import Final

RECORD: Final = "record.json"
RAW: Final = ("requests.parquet", "windows.parquet", "monitor.parquet", RECORD, "server.log")
