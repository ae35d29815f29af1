#!/usr/bin/env bash
# When Triton 2.51 reloads a model, its statistics start at zero again, but its metrics do not.
#
# Expected: Statistics and metrics both count the requests since the start of the server, or both start again.
# Behaviour: After a reload, even if only the number of instances changed, /v2/models/NAME/stats counts from zero. The
#   counters of /metrics continue, and remain after the model is unloaded. A monitor that subtracts statistics gets
#   negative numbers. A reload without a change of the files resets nothing. Subtract metrics, or read the statistics
#   again after each reload.
# Output, Debian 12, Python 3.11:
#   statistics and metrics after 3 requests: 3, 3; after a reload with 2 instances: 0, 3; 1 more request: 1, 4;
#   reloaded without a change: 1, 4; unloaded: none, 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps nvidia-pytriton==0.7.0 numpy==1.26.4
cd "$folder"
cat > serve.py <<'EOS'
import http.client, json, os, pathlib, re, shutil, socket, subprocess, sys, time

version = f"{sys.version_info.major}.{sys.version_info.minor}"
packages = pathlib.Path(sys.prefix, "lib", f"python{version}", "site-packages")
triton = packages / "pytriton" / "tritonserver"
CODE = """import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("y", each)]) for each in inputs]
"""
CONFIG = """backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: [1] }
output { name: "y" data_type: TYPE_FP32 dims: [1] }
"""
model = pathlib.Path("models", "same", "1")
model.mkdir(parents=True)
(model / "model.py").write_text(CODE)
config = model.parent / "config.pbtxt"
config.write_text(f"{CONFIG}instance_group {{ count: 1 kind: KIND_CPU }}\n")
shutil.copytree(triton / "backends", "backends")
shutil.copy2(triton / "python_backend_stubs" / version / "triton_python_backend_stub", "backends/python")
environment = {**os.environ, "LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs")}
environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
with socket.socket() as first, socket.socket() as second:
    first.bind(("127.0.0.1", 0))
    second.bind(("127.0.0.1", 0))
    port, metrics_port = first.getsockname()[1], second.getsockname()[1]


def call(method, path, body=None, *, port=port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


with open("log", "w") as log:
    command = [triton / "bin/tritonserver", "--model-repository=models", "--backend-directory=backends"]
    command += ["--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false"]
    command += [f"--metrics-port={metrics_port}", "--model-control-mode=explicit", "--load-model=same"]
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while call("GET", "/v2/health/ready")[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.5)
        def infer():
            tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}
            assert call("POST", "/v2/models/same/infer", json.dumps({"inputs": [tensor]}))[0] == 200

        def counts():
            status, answer = call("GET", "/v2/models/same/stats")
            statistics = json.loads(answer)["model_stats"][0]["inference_count"] if status == 200 else "none"
            metrics = call("GET", "/metrics", port=metrics_port)[1].decode()
            return f"{statistics}, {re.search(r'^nv_inference_count{.*} ([0-9]+)$', metrics, re.M)[1]}"

        for _ in range(3):
            infer()
        seen = [counts()]
        config.write_text(f"{CONFIG}instance_group {{ count: 2 kind: KIND_CPU }}\n")
        call("POST", "/v2/repository/models/same/load")
        seen.append(counts())
        infer()
        seen.append(counts())
        call("POST", "/v2/repository/models/same/load")
        seen.append(counts())
        call("POST", "/v2/repository/models/same/unload")
        while call("GET", "/v2/models/same/ready")[0] == 200 and time.monotonic() < deadline:
            time.sleep(0.2)
        seen.append(counts())
    finally:
        server.terminate()
        try:
            server.wait(60)
        finally:
            server.kill()
print("statistics and metrics after 3 requests: {}; after a reload with 2 instances: {}; 1 more request: {}; "
      "reloaded without a change: {}; unloaded: {}".format(*seen))
assert seen == ["3, 3", "0, 3", "1, 4", "1, 4", "none, 4"]
EOS
venv/bin/python serve.py
