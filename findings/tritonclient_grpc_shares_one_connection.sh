#!/usr/bin/env bash
# All clients of tritonclient 2.73.0 for gRPC in one process share one TCP connection to a server.
#
# Expected: Each tritonclient.grpc.InferenceServerClient opens its own connection, so eight clients in a load test
#   behave like eight users.
# Behaviour: gRPC gives all channels with the same address and the same options one connection. The requests of all
#   clients share this connection, and a load balancer for TCP connections sends all requests to one server. For
#   separate connections, pass channel_args=[("grpc.use_local_subchannel_pool", 1)] to each client.
# Output, Debian 12, Python 3.11:
#   connections of 8 clients: 1; with separate pools: 8
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "tritonclient[grpc]==2.73.0" grpcio==1.85.3 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import concurrent.futures
import grpc, tritonclient.grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

peers = set()


class Server(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ServerLive(self, request, context):
        peers.add(context.peer())
        return service_pb2.ServerLiveResponse(live=True)


server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Server(), server)
address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
server.start()


def connections(**options):
    peers.clear()
    clients = [tritonclient.grpc.InferenceServerClient(address, **options) for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda client: client.is_server_live(), clients))
    return len(peers)


shared, separate = connections(), connections(channel_args=[("grpc.use_local_subchannel_pool", 1)])
print(f"connections of 8 clients: {shared}; with separate pools: {separate}")
assert (shared, separate) == (1, 8)
EOS
