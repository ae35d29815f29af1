#!/usr/bin/env bash
# Triton 2.51 passes on outputs of a Python model that contradict the configuration of the model.
#
# Expected: Triton refuses an output whose datatype, shape or batch size differs from config.pbtxt, as it refuses such
#   an input.
# Behaviour: The configuration declares one FP32 number for each item of the batch. The model returns three FP64 numbers
#   for one of two items, and Triton answers with status 200, datatype FP64 and shape [1, 3]. The metadata of the model
#   still declares FP32. A client that trusts the metadata reads wrong numbers from the binary answer. Check the outputs
#   of a Python model in a test of your own.
# Output, Debian 12, Python 3.11:
#   declared FP32 [-1, 1]; sent [2, 1]; answered 200 FP64 [1, 3]; input of FP64: 400, input of shape [2, 3]: 400
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps nvidia-pytriton==0.7.0 numpy==1.26.4
cd "$folder"
cat > serve.py <<'EOS'
import http.client, json, os, pathlib, shutil, socket, subprocess, sys, time

version = f"{sys.version_info.major}.{sys.version_info.minor}"
packages = pathlib.Path(sys.prefix, "lib", f"python{version}", "site-packages")
triton = packages / "pytriton" / "tritonserver"
CODE = """import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("y", np.ones((1, 3), np.float64))]) for _ in requests]
"""
CONFIG = """backend: "python"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [1] }
output { name: "y" data_type: TYPE_FP32 dims: [1] }
"""
model = pathlib.Path("models", "other", "1")
model.mkdir(parents=True)
(model / "model.py").write_text(CODE)
(model.parent / "config.pbtxt").write_text(CONFIG)
shutil.copytree(triton / "backends", "backends")
shutil.copy2(triton / "python_backend_stubs" / version / "triton_python_backend_stub", "backends/python")
environment = {**os.environ, "LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs")}
environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]


def call(method, path, body=None):
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
    command += ["--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"]
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while call("GET", "/v2/health/ready")[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.5)
        def infer(datatype, *shape):
            tensor = {"name": "x", "datatype": datatype, "shape": shape, "data": [1.0] * shape[0] * shape[1]}
            return call("POST", "/v2/models/other/infer", json.dumps({"inputs": [tensor]}))

        metadata = json.loads(call("GET", "/v2/models/other")[1])["outputs"][0]
        status, answer = infer("FP32", 2, 1)
        inputs = infer("FP64", 2, 1)[0], infer("FP32", 2, 3)[0]
    finally:
        server.terminate()
        try:
            server.wait(60)
        finally:
            server.kill()
output = json.loads(answer)["outputs"][0]
print(f"declared {metadata['datatype']} {metadata['shape']}; sent [2, 1]; answered {status} {output['datatype']} "
      f"{output['shape']}; input of FP64: {inputs[0]}, input of shape [2, 3]: {inputs[1]}")
assert (metadata["datatype"], metadata["shape"]) == ("FP32", [-1, 1])
assert (status, output["datatype"], output["shape"], inputs) == (200, "FP64", [1, 3], (400, 400))
EOS
venv/bin/python serve.py
