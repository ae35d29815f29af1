#!/usr/bin/env bash
# Triton 2.51's Python backend keeps the shared memory of its largest request until the model is unloaded.
#
# Expected: After a large request is answered, the memory of its input and output is free again.
# Behaviour: The shared memory of a model instance grows with a request and does not shrink. After one request of
#   48 MiB, whose answer has the same size, the instance keeps twice this memory in /dev/shm. Each instance has a region
#   of its own. Plan /dev/shm and the memory of a host for the largest request on all instances at once.
# Output, Debian 12, Python 3.11:
#   shared memory: 1 MiB; after a request of 48 MiB: 99 MiB; after 100 small requests: 99 MiB; unloaded: 0 MiB
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps nvidia-pytriton==0.7.0 numpy==1.26.4
cd "$folder"
cat > serve.py <<'EOS'
import http.client, json, os, pathlib, shutil, socket, subprocess, sys, time

PREFIX = f"findings_{os.getpid()}_"
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
input { name: "x" data_type: TYPE_UINT8 dims: [-1] }
output { name: "y" data_type: TYPE_UINT8 dims: [-1] }
"""
model = pathlib.Path("models", "same", "1")
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


def shared_mebibytes():
    """The memory of all regions of this server."""
    return sum(region.stat().st_blocks for region in pathlib.Path("/dev/shm").glob(f"{PREFIX}*")) * 512 >> 20


def call(method, path, body=None, headers={}):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


with open("log", "w") as log:
    command = [triton / "bin/tritonserver", "--model-repository=models", "--backend-directory=backends"]
    command += ["--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"]
    command += ["--model-control-mode=explicit", "--load-model=same"]
    command += [f"--backend-config=python,shm-region-prefix-name={PREFIX}"]
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while call("GET", "/v2/health/ready")[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.5)
        def infer(size):
            tensor = {"name": "x", "datatype": "UINT8", "shape": [size], "parameters": {"binary_data_size": size}}
            request = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
            header = json.dumps(request).encode()
            length = {"Inference-Header-Content-Length": str(len(header))}
            assert call("POST", "/v2/models/same/infer", header + bytes(size), headers=length)[0] == 200

        infer(1)
        seen = [shared_mebibytes()]
        infer(48 << 20)
        seen.append(shared_mebibytes())
        for _ in range(100):
            infer(1)
        seen.append(shared_mebibytes())
        call("POST", "/v2/repository/models/same/unload")
        while shared_mebibytes() and time.monotonic() < deadline:
            time.sleep(0.5)
        seen.append(shared_mebibytes())
    finally:
        server.terminate()
        try:
            server.wait(60)
        finally:
            server.kill()
print("shared memory: {} MiB; after a request of 48 MiB: {} MiB; after 100 small requests: {} MiB; unloaded: {} MiB"
      .format(*seen))
assert seen[0] < 10 and seen[1] >= 96 and seen[2] == seen[1] and seen[3] == 0
EOS
venv/bin/python serve.py
