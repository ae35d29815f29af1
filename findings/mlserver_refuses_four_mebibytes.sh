#!/usr/bin/env bash
# MLServer 1.7.1 refuses a batch of seven 224 x 224 images over gRPC with its default settings.
#
# Expected: A server of image networks accepts a batch of eight images.
# Behaviour: MLServer keeps gRPC's default limit of 4 MiB for a received message. Seven float32 images (4.2 MB) raise
#   RESOURCE_EXHAUSTED, and six images pass. grpc_max_message_length in settings.json raises the limit. Triton has no
#   such limit by default.
# Output, Debian 12, Python 3.11:
#   6 images: answered; 7 images: RESOURCE_EXHAUSTED
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mlserver==1.7.1 grpcio==1.85.3 numpy==2.4.6
cd "$folder"
cat > sums.py <<'EOF'
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Sums(MLModel):
    async def predict(self, payload):
        images = NumpyCodec.decode_input(payload.inputs[0])
        sums = NumpyCodec.encode_output("y", images.reshape(len(images), -1).sum(axis=1, keepdims=True))
        return InferenceResponse(model_name=self.name, outputs=[sums])
EOF
cat > client.py <<'EOF'
import json, pathlib, socket, subprocess, sys, time
import grpc
import numpy as np
from mlserver.grpc import dataplane_pb2 as messages, dataplane_pb2_grpc as service

sockets = [socket.socket() for _ in range(3)]
for each in sockets:
    each.bind(("127.0.0.1", 0))
http, port, metrics = (each.getsockname()[1] for each in sockets)
for each in sockets:
    each.close()
settings = {"host": "127.0.0.1", "http_port": http, "grpc_port": port, "metrics_port": metrics, "parallel_workers": 0}
pathlib.Path("settings.json").write_text(json.dumps(settings))
pathlib.Path("model-settings.json").write_text(json.dumps({"name": "sums", "implementation": "sums.Sums"}))
server = subprocess.Popen([str(pathlib.Path(sys.executable).parent / "mlserver"), "start", "."])


def outcome(stub, images):
    x = messages.ModelInferRequest.InferInputTensor(name="x", datatype="FP32", shape=[images, 3, 224, 224])
    request = messages.ModelInferRequest(model_name="sums", inputs=[x])
    request.raw_input_contents.append(np.ones((images, 3, 224, 224), np.float32).tobytes())
    try:
        stub.ModelInfer(request, timeout=30)
        return "answered"
    except grpc.RpcError as error:
        return error.code().name


try:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = service.GRPCInferenceServiceStub(channel)
        deadline = time.monotonic() + 60
        while outcome(stub, 1) != "answered" and time.monotonic() < deadline:
            time.sleep(0.5)
        six, seven = outcome(stub, 6), outcome(stub, 7)
finally:
    server.terminate()
    try:
        server.wait(30)
    finally:
        server.kill()
print(f"6 images: {six}; 7 images: {seven}")
assert (six, seven) == ("answered", "RESOURCE_EXHAUSTED")
EOF
venv/bin/python client.py 2>log
