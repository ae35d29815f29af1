#!/usr/bin/env bash
# pyarrow 25.0.1 reads unsigned 64-bit identifiers of CSV and JSON as floats, and different identifiers become equal.
#
# Expected: A column of whole numbers up to 2**64 - 1 becomes uint64, as in pandas, or pyarrow refuses it.
# Behaviour: One number above 2**63 - 1 makes the whole column double. Neighbouring identifiers then compare equal, even
#   identifiers that fit into int64, and a group by user or session joins different users or sessions.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   4 different numbers; pyarrow CSV: double, 2 different; pyarrow JSON: double, 2 different; pandas: uint64, 4 different
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==25.0.1 pandas==3.0.5
cd "$folder"
venv/bin/python - <<'EOF'
import io

import pandas as pd
from pyarrow import csv, json

identifiers = [2**64 - 1, 2**64 - 2, 2**62 + 1, 2**62 + 2]
as_csv = "user\n" + "".join(f"{each}\n" for each in identifiers)
as_json = "".join(f'{{"user": {each}}}\n' for each in identifiers)
found = {
    "pyarrow CSV": csv.read_csv(io.BytesIO(as_csv.encode()))["user"],
    "pyarrow JSON": json.read_json(io.BytesIO(as_json.encode()))["user"],
}
with_pandas = pd.read_csv(io.StringIO(as_csv))["user"]
said = [f"{how}: {column.type}, {len(column.unique())} different" for how, column in found.items()]
print(f"4 different numbers; {'; '.join(said)}; pandas: {with_pandas.dtype}, {with_pandas.nunique()} different")
assert all(str(column.type) == "double" and len(column.unique()) == 2 for column in found.values())
assert str(with_pandas.dtype) == "uint64" and with_pandas.nunique() == 4
EOF
