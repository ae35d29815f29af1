#!/usr/bin/env bash
# MLflow 3.17.2 shows the larger of two values logged at one step and time, not the later one.
#
# Guess: the value of a run's metric is the one that was logged last.
# Behaviour: the latest value is the largest (step, timestamp, value). A correction with the same step and timestamp
#   counts only if it is larger; the history keeps both. Give a correction a later timestamp.
# Output, Debian 12, Python 3.11:
#   logged 3.0, then 2.0; value of the run 3.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1
cd "$folder"
MLFLOW_DISABLE_TELEMETRY=true venv/bin/python - 2>log <<'EOF'
import mlflow

mlflow.set_tracking_uri("sqlite:///runs.db")
with mlflow.start_run() as run:
    for value in (3.0, 2.0):
        mlflow.log_metric("latency_ms", value, step=0, timestamp=1)
shown = mlflow.get_run(run.info.run_id).data.metrics["latency_ms"]
print(f"logged 3.0, then 2.0; value of the run {shown}")
assert shown == 3.0
EOF
