#!/usr/bin/env bash
# tritonclient 2.73.0 runs the callbacks of async_infer over gRPC one after another, in one thread.
#
# Expected: async_infer calls the callback of each request when its response arrives, also if an earlier callback is
#   still running.
# Behaviour: One thread per client runs all callbacks. If a callback takes 100 ms, for example to decode an image, the
#   callback of the next response starts 100 ms later, although the response has arrived. A load test that reads the
#   clock in the callback adds the time of its own callbacks to the latency. In a callback, only read the clock and put
#   the result into a queue.
# Output, Debian 12, Python 3.11:
#   8 responses at once, callbacks of 0.1 s: last callback starts after 0.7 s, threads: 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "tritonclient[grpc]==2.73.0" grpcio==1.85.3 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import concurrent.futures, queue, threading, time
import grpc, numpy as np, tritonclient.grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc


class Server(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ModelInfer(self, request, context):
        return service_pb2.ModelInferResponse(model_name="model")


server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Server(), server)
address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
server.start()
client = tritonclient.grpc.InferenceServerClient(address)
x = tritonclient.grpc.InferInput("x", [1], "FP32")
x.set_data_from_numpy(np.zeros(1, np.float32))
client.infer("model", [x])
started = queue.Queue()


def callback(result, error):
    started.put((time.monotonic(), threading.get_ident()))
    time.sleep(0.1)


start = time.monotonic()
for _ in range(8):
    client.async_infer("model", [x], callback)
times, threads = zip(*[started.get(timeout=60) for _ in range(8)])
last_s = max(times) - start
print(f"8 responses at once, callbacks of 0.1 s: last callback starts after {last_s:.1f} s, "
      f"threads: {len(set(threads))}")
assert last_s > 0.65 and len(set(threads)) == 1
EOS
