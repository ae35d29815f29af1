#!/usr/bin/env bash
# Triton 2.51 with model namespaces refuses a request for the statistics of all models.
#
# Expected: /v2/models/stats lists all models, also with --model-namespacing=true, which changes how names are resolved.
# Behaviour: With --model-namespacing=true, Triton answers a request for the statistics of all models with status 400,
#   even if no two models share a name. A request for one model by its name works. A monitor that requests all
#   statistics gets none.
# Output, Debian 12, Python 3.11:
#   without namespaces: all 200, one 200; with: all 400, one 200
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps nvidia-pytriton==0.7.0 numpy==1.26.4
cd "$folder"
cat > serve.py <<'EOS'
import http.client, os, pathlib, shutil, socket, subprocess, sys, time

version = f"{sys.version_info.major}.{sys.version_info.minor}"
packages = pathlib.Path(sys.prefix, "lib", f"python{version}", "site-packages")
triton = packages / "pytriton" / "tritonserver"
model = pathlib.Path("models/one/1")
model.mkdir(parents=True)
(model / "model.py").write_text("class TritonPythonModel:\n    def execute(self, requests):\n        return []\n")
(model.parent / "config.pbtxt").write_text(
    'backend: "python"\ninput { name: "x" data_type: TYPE_FP32 dims: [1] }\n'
    'output { name: "y" data_type: TYPE_FP32 dims: [1] }\n'
)
shutil.copytree(triton / "backends", "backends")
shutil.copy2(triton / "python_backend_stubs" / version / "triton_python_backend_stub", "backends/python")
environment = {**os.environ, "LD_LIBRARY_PATH": str(packages / "nvidia_pytriton.libs")}
environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"


def statistics(*arguments):
    """The status of the statistics of all models, and of one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [triton / "bin/tritonserver", "--model-repository=models", "--backend-directory=backends"]
    command += ["--http-address=127.0.0.1", f"--http-port={port}", "--allow-grpc=false", "--allow-metrics=false"]
    server = subprocess.Popen([*command, *arguments], env=environment, stdout=log, stderr=log)

    def status(path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    try:
        deadline = time.monotonic() + 60
        while status("/v2/health/ready") != 200 and time.monotonic() < deadline:
            time.sleep(0.5)
        return status("/v2/models/stats"), status("/v2/models/one/stats")
    finally:
        server.terminate()
        try:
            server.wait(30)
        finally:
            server.kill()


with open("log", "w") as log:
    without, spaced = statistics(), statistics("--model-namespacing=true")
print(f"without namespaces: all {without[0]}, one {without[1]}; with: all {spaced[0]}, one {spaced[1]}")
assert (without, spaced) == ((200, 200), (400, 200))
EOS
venv/bin/python serve.py
