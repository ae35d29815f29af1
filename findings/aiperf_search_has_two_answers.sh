#!/usr/bin/env bash
# The search of AIPerf 0.13.0 for the highest rate within an SLA writes two different answers into one file.
#
# Expected: In search_history.json, `best_trials` (the answer that the documentation tells users to read) and
#   `boundary_summary.feasible_max` name the same rate.
# Behaviour: The planner monotonic-sla probes a rate two or three times, and the majority decides. `best_trials` names
#   the highest rate at which a single probe was within the SLA, although two of three probes were not.
#   The server of this script answers in 1 ms or 400 ms by a fixed list of probes, so the result does not depend on
#   the speed of the machine. At a rate of 175/s, the probes are slow, fast and slow.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   probes: 100 fast, 100 fast, 200 slow, 200 slow, 150 fast, 150 fast, 175 slow, 175 fast, 175 slow
#   boundary_summary: 150; best_trials: 175
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q aiperf==0.13.0
cd "$folder"
venv/bin/python - <<'EOF'
import json, subprocess, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

REQUESTS = 40  # per probe
SLOW = [False, False, True, True, False, False, True, False, True]
seen, lock = 0, threading.Lock()


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global seen
        with lock:
            probe = min(seen // REQUESTS, len(SLOW) - 1)
            seen += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.4 if SLOW[probe] else 0.001)
        body = b'{"text": "x"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
Path("bodies.jsonl").write_text('{"messages": []}\n')
word = {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}
Path("words").mkdir()
Path("words/tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": word}))
kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "x"}
Path("words/tokenizer_config.json").write_text(json.dumps(kind))
command = ["venv/bin/aiperf", "profile", "--model", "x", "--tokenizer", "words", "--ui", "none"]
command += ["--url", f"http://127.0.0.1:{server.server_port}/x", "--endpoint-type", "raw"]
command += ["--input-file", "bodies.jsonl", "--custom-dataset-type", "raw-payload"]
command += ["--request-rate", "100", "--request-count", str(REQUESTS), "--output-artifact-dir", "out"]
command += ["--search-planner", "monotonic-sla", "--search-space", "phases.profiling.rate:100,200:int"]
command += ["--search-metric", "request_throughput", "--search-direction", "maximize"]
command += ["--search-sla", "request_latency:p95:lt:200", "--search-max-iterations", str(len(SLOW))]
subprocess.run(command, check=True, capture_output=True)
found = json.loads(Path("out/search_history.json").read_text())
rate = "phases.profiling.rate"
probes = [(each["variation_values"][rate], each["feasible"]) for each in found["iterations"]]
print("probes:", ", ".join(f"{at} {'fast' if fits else 'slow'}" for at, fits in probes))
boundary = found["boundary_summary"]["feasible_max"]["value"]
best = found["best_trials"][0]["variation_values"][rate]
print(f"boundary_summary: {boundary}; best_trials: {best}")
assert (boundary, best) == (150, 175), (boundary, best)
EOF
