#!/usr/bin/env bash
# MLflow 3.17.2 shows the larger of two values that were logged at one step and time, not the later value.
#
# Expected: The value of a metric is the value that was logged last.
# Behaviour: MLflow shows the value with the largest (step, timestamp, value). A correction with the same step and
#   timestamp therefore counts only if its value is larger. The history of the metric keeps both values. Give a
#   correction a later timestamp.
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
