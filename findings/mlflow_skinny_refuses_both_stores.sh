#!/usr/bin/env bash
# mlflow-skinny 3.17.2 refuses to log to files and recommends sqlite, but refuses sqlite, too.
#
# Expected: After an installation with pip, mlflow-skinny can log to the store that its message recommends, or its
#   message names the missing package.
# Behaviour: mlflow-skinny refuses a store of files with the advice to use sqlite. With sqlite, it says that sqlite is
#   not among the supported schemes, which are files and servers. The cause is that SQLAlchemy and alembic are missing.
#   mlflow-skinny does not require these packages, and the message does not name them. After you install both packages,
#   sqlite works.
# Output, Debian 12, Python 3.11:
#   files: refused, use sqlite; sqlite: refused, use files; after installing sqlalchemy and alembic: logged
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mlflow-skinny==3.17.2
cd "$folder"
cat > log_one.py <<'EOS'
import sys

import mlflow

mlflow.set_tracking_uri(sys.argv[1])
try:
    with mlflow.start_run():
        mlflow.log_metric("one", 1)
    print("logged")
except mlflow.exceptions.MlflowException as error:
    text = str(error)
    if "sqlite:///mlflow.db" in text and "maintenance mode" in text:
        print("refused, use sqlite")
    elif "unsupported URI 'sqlite" in text and "'file'" in text and "alchemy" not in text.lower():
        print("refused, use files")
    else:
        raise
EOS
log_one() { MLFLOW_DISABLE_TELEMETRY=true venv/bin/python log_one.py "$1" 2>>log; }
files=$(log_one "file://$PWD/runs")
sqlite=$(log_one sqlite:///runs.db)
venv/bin/pip install -q sqlalchemy==2.1.9 alembic==1.20.1
complete=$(log_one sqlite:///runs.db)
echo "files: $files; sqlite: $sqlite; after installing sqlalchemy and alembic: $complete"
[ "$files|$sqlite|$complete" = "refused, use sqlite|refused, use files|logged" ]
