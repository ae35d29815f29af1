#!/usr/bin/env bash
# pandas 3.1.1 reads a JSON column of durations as dates if its name ends with `_time` and its values are large.
#
# Expected: read_json() returns integers for a column of integers, whatever the name and the values.
# Behaviour: By default, read_json() converts a column whose name ends with `_time` or `_at`, or starts with
#   `timestamp`, if its values are at least 31536000. A column queue_time in nanoseconds therefore keeps its integers if
#   all times are below 31.5 ms, and becomes dates of 1971 if they are longer. A program works with a fast server, and
#   fails with a slow server. Pass dtype=False.
# Output, Debian 12, Python 3.11:
#   queue_time of 31 ms: int64; of 32 ms: datetime64[us] 1971-01-06 08:53:20; the same column as queue_ns: int64
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pandas==3.1.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import io, json
import pandas as pd


def column(name, value_ns, **options):
    return pd.read_json(io.StringIO(json.dumps([{name: value_ns}] * 3)), **options)[name]


fast, slow = column("queue_time", 31_000_000), column("queue_time", 32_000_000)
renamed = column("queue_ns", 32_000_000)
kept = column("queue_time", 32_000_000, dtype=False)
print(f"queue_time of 31 ms: {fast.dtype}; of 32 ms: {slow.dtype} {slow[0]}; "
      f"the same column as queue_ns: {renamed.dtype}")
assert fast.dtype == renamed.dtype == kept.dtype == "int64" and slow.dtype.kind == "M"
EOS
