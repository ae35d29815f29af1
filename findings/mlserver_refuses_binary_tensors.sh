#!/usr/bin/env bash
# MLServer 1.7.1 answers a request with binary tensors over HTTP with status 500.
#
# Expected: A server without the binary extension of the Open Inference Protocol refuses such a request with status 4xx.
# Behaviour: MLServer ignores the header Inference-Header-Content-Length and parses the whole body as JSON. If the body
#   has bytes that are not UTF-8, MLServer answers 500 Internal Server Error, as if the server had failed. A client can
#   detect the missing extension only from the metadata of the server, which lists no extensions.
# Output, Debian 12, Python 3.11:
#   extensions: none; JSON: 200; binary: 500
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mlserver==1.7.1 numpy==2.4.6
cd "$folder"
cat > sums.py <<'EOS'
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Sums(MLModel):
    async def predict(self, payload):
        numbers = NumpyCodec.decode_input(payload.inputs[0])
        sums = NumpyCodec.encode_output("y", numbers.sum(axis=1, keepdims=True))
        return InferenceResponse(model_name=self.name, outputs=[sums])
EOS
cat > client.py <<'EOS'
import http.client, json, pathlib, socket, subprocess, sys, time

import numpy as np

sockets = [socket.socket() for _ in range(3)]
for each in sockets:
    each.bind(("127.0.0.1", 0))
port, grpc, metrics = (each.getsockname()[1] for each in sockets)
for each in sockets:
    each.close()
settings = {"host": "127.0.0.1", "http_port": port, "grpc_port": grpc, "metrics_port": metrics, "parallel_workers": 0}
pathlib.Path("settings.json").write_text(json.dumps(settings))
pathlib.Path("model-settings.json").write_text(json.dumps({"name": "sums", "implementation": "sums.Sums"}))
server = subprocess.Popen([str(pathlib.Path(sys.executable).parent / "mlserver"), "start", "."])


def call(method, path, body=None, headers={}):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


numbers = np.linspace(0, 1, 8, dtype=np.float32)
tensor = {"name": "x", "datatype": "FP32", "shape": [1, 8]}
plain = json.dumps({"inputs": [tensor | {"data": numbers.tolist()}]})
header = json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": numbers.nbytes}}]}).encode()
try:
    deadline = time.monotonic() + 60
    while call("GET", "/v2/models/sums/ready")[0] != 200 and time.monotonic() < deadline:
        time.sleep(0.5)
    extensions = json.loads(call("GET", "/v2")[1])["extensions"]
    as_json = call("POST", "/v2/models/sums/infer", plain, {"Content-Type": "application/json"})[0]
    told = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))}
    binary = call("POST", "/v2/models/sums/infer", header + numbers.tobytes(), told)[0]
finally:
    server.terminate()
    try:
        server.wait(30)
    finally:
        server.kill()
print(f"extensions: {', '.join(extensions) or 'none'}; JSON: {as_json}; binary: {binary}")
assert (extensions, as_json, binary) == ([], 200, 500)
EOS
venv/bin/python client.py 2>log
