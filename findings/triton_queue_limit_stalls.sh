#!/usr/bin/env bash
# With max_queue_size, Triton 2.51 answers only a fraction of the requests, and some of them half a second late.
#
# Expected: A queue of at most two requests refuses further requests, and the model stays as busy as with an unlimited
#   queue.
# Behaviour: The configuration is dynamic_batching { default_queue_policy { max_queue_size: 2 } }, and six clients send
#   again after a refusal. A model with a service time of 20 ms repeatedly idles for about half a second while requests
#   wait in its queue. It answers a tenth to a half as many requests as with an unlimited queue, and the slowest
#   responses take 500 ms and more. The latencies behind such a queue are not the latencies of the model. Limit the load
#   in front of the server instead.
# Output, Debian 12, Python 3.11, two CPUs:
#   6 clients, open queue: 45 answers/s, slowest 200 ms; at most 2 in the queue: 4 answers/s, slowest 1113 ms
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps nvidia-pytriton==0.7.0 numpy==1.26.4
cd "$folder"
cat > serve.py <<'EOS'
import http.client, json, os, pathlib, shutil, socket, subprocess, sys, threading, time

SECONDS, CLIENTS = 6, 6
version = f"{sys.version_info.major}.{sys.version_info.minor}"
packages = pathlib.Path(sys.prefix, "lib", f"python{version}", "site-packages")
triton = packages / "pytriton" / "tritonserver"
CODE = """import time
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.02)
        inputs = [pb.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("y", each)]) for each in inputs]
"""
CONFIG = """backend: "python"
max_batch_size: 1
input { name: "x" data_type: TYPE_FP32 dims: [1] }
output { name: "y" data_type: TYPE_FP32 dims: [1] }
"""
for name, policy in {"open": "", "short": "default_queue_policy { max_queue_size: 2 }"}.items():
    model = pathlib.Path("models", name, "1")
    model.mkdir(parents=True)
    (model / "model.py").write_text(CODE)
    (model.parent / "config.pbtxt").write_text(f"{CONFIG}dynamic_batching {{ {policy} }}\n")
shutil.copytree(triton / "backends", "backends")
shutil.copy2(triton / "python_backend_stubs" / version / "triton_python_backend_stub", "backends/python")
environment = {**os.environ, "LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs")}
environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
tensor = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0]}
body, headers = json.dumps({"inputs": [tensor]}), {"Content-Type": "application/json"}


def is_ready():
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/v2/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def answers_ms(model):
    """The latencies of what is answered to clients that ask again and again."""
    found, end = [], time.monotonic() + SECONDS

    def ask():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        while time.monotonic() < end:
            start = time.monotonic()
            connection.request("POST", f"/v2/models/{model}/infer", body, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                found.append(1000 * (time.monotonic() - start))
            else:
                time.sleep(0.005)
        connection.close()

    clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    return found


with open("log", "w") as log:
    command = [triton / "bin/tritonserver", "--model-repository=models", "--backend-directory=backends"]
    command += ["--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"]
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not is_ready() and time.monotonic() < deadline:
            time.sleep(0.5)
        unbounded, bounded = answers_ms("open"), answers_ms("short")
    finally:
        server.terminate()
        try:
            server.wait(30)
        finally:
            server.kill()
print(f"{CLIENTS} clients, open queue: {len(unbounded) / SECONDS:.0f} answers/s, slowest {max(unbounded):.0f} ms; "
      f"at most 2 in the queue: {len(bounded) / SECONDS:.0f} answers/s, slowest {max(bounded):.0f} ms")
assert len(bounded) < 0.75 * len(unbounded) and max(bounded) > 400
EOS
venv/bin/python serve.py
