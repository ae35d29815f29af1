#!/usr/bin/env bash
# In Triton 2.51's Python backend, the address of an input depends on the length of its name, and may be unaligned.
#
# Expected: A float32 input begins at an address that NumPy's flag ALIGNED accepts, whatever the input is called.
# Behaviour: The address of np.from_dlpack(tensor) modulo 8 is the number of letters of the name modulo 8. With the name
#   "input", the array is unaligned, and NumPy takes 1.5 to 2 times as long for a product. The same holds for requests
#   in JSON, in binary form and in system shared memory. as_numpy() copies the values to an aligned address. Give a
#   float32 input a name of 4, 8 or 16 letters.
# Output on 2 vCPUs (AMD EPYC), Debian 12, Python 3.11:
#   data: 4 modulo 8, aligned; input: 5 modulo 8, unaligned; pictures: 0 modulo 8, aligned;
#   pictures_of_size: 0 modulo 8, aligned; time of a product, input / data: 1.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps nvidia-pytriton==0.7.0 numpy==1.26.4
cd "$folder"
cat > serve.py <<'EOS'
import http.client, json, os, pathlib, shutil, socket, subprocess, sys, time

NAMES = ["data", "input", "pictures", "pictures_of_size"]
version = f"{sys.version_info.major}.{sys.version_info.minor}"
packages = pathlib.Path(sys.prefix, "lib", f"python{version}", "site-packages")
triton = packages / "pytriton" / "tritonserver"
CODE = """import time
import numpy as np
import triton_python_backend_utils as pb


def seconds(values):
    times, product = [], np.empty_like(values)
    for _ in range(21):
        start = time.perf_counter()
        np.multiply(values, 2, out=product)
        times.append(time.perf_counter() - start)
    return np.median(times)


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            arrays = [np.from_dlpack(tensor) for tensor in request.inputs()]
            facts = [[each.ctypes.data % 8, each.flags.aligned, seconds(each)] for each in arrays]
            answers.append(pb.InferenceResponse([pb.Tensor("facts", np.array(facts, np.float64))]))
        return answers
"""
CONFIG = 'backend: "python"\noutput { name: "facts" data_type: TYPE_FP64 dims: [-1, 3] }\n'
CONFIG += "".join(f'input {{ name: "{name}" data_type: TYPE_FP32 dims: [-1] }}\n' for name in NAMES)
model = pathlib.Path("models", "addresses", "1")
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
        tensor = {"datatype": "FP32", "shape": [200000], "data": [1.0] * 200000}
        body = json.dumps({"inputs": [{"name": name, **tensor} for name in NAMES]})
        _, answer = call("POST", "/v2/models/addresses/infer", body)
    finally:
        server.terminate()
        try:
            server.wait(60)
        finally:
            server.kill()
values = json.loads(answer)["outputs"][0]["data"]
facts = dict(zip(NAMES, zip(values[::3], values[1::3], values[2::3])))
ratio = facts["input"][2] / facts["data"][2]
for name, (remainder, aligned, _) in facts.items():
    print(f"{name}: {remainder:.0f} modulo 8, {'aligned' if aligned else 'unaligned'}", end="; ")
print(f"time of a product, input / data: {ratio:.1f}")
assert [facts[name][0] for name in NAMES] == [len(name) % 8 for name in NAMES]
assert [facts[name][1] for name in NAMES] == [1, 0, 1, 1] and ratio > 1.2
EOS
venv/bin/python serve.py
