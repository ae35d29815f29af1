#!/usr/bin/env bash
# locust 2.47.0 rounds latencies above 100 ms before it computes percentiles.
#
# Expected: If all responses take 1049 ms, the 95th percentile is 1049 ms.
# Behaviour: Locust rounds latencies above 100 ms to two digits, and latencies above 10 s to full seconds. It reports
#   1000 ms for 1049 ms, so an SLA of 1000 ms seems to hold, and 1100 ms for 1051 ms. Mean, minimum and maximum are
#   exact. To test an SLA, compute the percentile from the latencies of the event `request`.
# Output, Debian 12, Python 3.11:
#   1049 ms: p95 1000, maximum 1049; 1051 ms: p95 1100, maximum 1051; 14499 ms: p95 14000, maximum 14499
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q locust==2.47.0
cd "$folder"
venv/bin/python - <<'EOS'
from locust.stats import RequestStats


def summary(latency_ms):
    stats = RequestStats()
    for _ in range(1000):
        stats.log_request("POST", "/infer", latency_ms, 0)
    return stats.total.get_response_time_percentile(0.95), stats.total.max_response_time


seen = {latency_ms: summary(latency_ms) for latency_ms in (1049, 1051, 14499)}
print("; ".join(f"{latency} ms: p95 {p95}, maximum {largest}" for latency, (p95, largest) in seen.items()))
assert seen == {1049: (1000, 1049), 1051: (1100, 1051), 14499: (14000, 14499)}
EOS
