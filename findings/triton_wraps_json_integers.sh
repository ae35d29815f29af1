#!/usr/bin/env bash
# Triton 2.51 wraps integers of a JSON request that do not fit into their datatype, and answers with status 200.
#
# Expected: Triton refuses 300 as a UINT8 with status 400.
# Behaviour: Triton keeps the low bits: 300 becomes 44 as UINT8, 200 becomes -56 as INT8, and 2**31 becomes -2**31 as
#   INT32. 1e300 becomes infinity as FP32. A client that sends wrong pixels or identifiers notices nothing. For numbers
#   that cannot be read at all, such as 1.0 as INT32, Triton returns status 500, as if the server had failed.
# Output, Debian 12, Python 3.11:
#   UINT8 300: 200, 44; INT8 200: 200, -56; INT32 2147483648: 200, -2147483648; FP32 1e+300: 200, inf; INT32 1.0: 500
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
CODE = """import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("y", each)]) for each in inputs]
"""
for datatype in ("UINT8", "INT8", "INT32", "FP32"):
    model = pathlib.Path("models", datatype, "1")
    model.mkdir(parents=True)
    (model / "model.py").write_text(CODE)
    tensors = "".join(f'{side} {{ name: "{name}" data_type: TYPE_{datatype} dims: [1] }}\n'
                      for side, name in (("input", "x"), ("output", "y")))
    (model.parent / "config.pbtxt").write_text(f'backend: "python"\n{tensors}')
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
        answers = []
        for datatype, number in (("UINT8", 300), ("INT8", 200), ("INT32", 2**31), ("FP32", 1e300), ("INT32", 1.0)):
            tensor = {"name": "x", "datatype": datatype, "shape": [1], "data": [number]}
            status, answer = call("POST", f"/v2/models/{datatype}/infer", json.dumps({"inputs": [tensor]}))
            value = f", {json.loads(answer)['outputs'][0]['data'][0]}" if status == 200 else ""
            answers.append(f"{datatype} {number}: {status}{value}")
    finally:
        server.terminate()
        try:
            server.wait(60)
        finally:
            server.kill()
print("; ".join(answers))
assert answers == ["UINT8 300: 200, 44", "INT8 200: 200, -56", "INT32 2147483648: 200, -2147483648",
                   "FP32 1e+300: 200, inf", "INT32 1.0: 500"]
EOS
venv/bin/python serve.py
