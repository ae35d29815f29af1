#!/usr/bin/env bash
# MLflow 3.17.2 returns 1.797e308 for a metric that was logged as infinite.
#
# Expected: MLflow returns infinity for a metric that was logged as infinite, as it returns NaN for NaN.
# Behaviour: The SQL store replaces infinity by the largest float, without a warning, and keeps NaN. Means and charts of
#   such a metric are finite and wrong. If a ratio may be infinite, log it as a text parameter, or do not log it.
# Output, Debian 12, Python 3.11:
#   logged inf, nan; returned 1.7976931348623157e+308, nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mlflow-skinny==3.17.2 sqlalchemy==2.1.9 alembic==1.20.1
cd "$folder"
MLFLOW_DISABLE_TELEMETRY=true venv/bin/python - 2>log <<'EOF'
import math
import mlflow

mlflow.set_tracking_uri("sqlite:///runs.db")
with mlflow.start_run() as run:
    mlflow.log_metrics({"unbounded": math.inf, "undefined": math.nan})
metrics = mlflow.get_run(run.info.run_id).data.metrics
print(f"logged inf, nan; returned {metrics['unbounded']}, {metrics['undefined']}")
assert math.isfinite(metrics["unbounded"]) and math.isnan(metrics["undefined"])
EOF
