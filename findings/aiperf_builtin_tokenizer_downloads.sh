#!/usr/bin/env bash
# AIPerf 0.13.0 downloads the tokenizer that it describes as "zero-network-access".
#
# Expected: `--tokenizer builtin` works without a network. `aiperf profile --help` says: "builtin for a
#   zero-network-access tokenizer backed by tiktoken".
# Behaviour: Without the file in the cache of tiktoken, AIPerf asks a server in the internet for it. On a machine
#   without internet access, the benchmark ends with an error before its first request.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   the help promises zero network access: True
#   host asked: openaipublic.blob.core.windows.net
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q aiperf==0.13.0
cd "$folder"
export TIKTOKEN_CACHE_DIR="$folder/cache" COLUMNS=200
venv/bin/aiperf profile --help > help.txt
venv/bin/python - <<'EOF'
import socket
import sys
from pathlib import Path

from aiperf.common.tokenizer import Tokenizer

words = " ".join(Path("help.txt").read_text().replace("│", " ").split())
print("the help promises zero network access:", "zero-network-access" in words)
assert "zero-network-access" in words
asked = []


def refuse(host, *_args, **_keys):  # no request leaves this machine
    asked.append(host)
    raise socket.gaierror("no network in this experiment")


socket.getaddrinfo = refuse
try:
    Tokenizer.from_pretrained("builtin")
except Exception:
    hosts = sorted(set(asked))
    print("host asked:", *hosts)
    sys.exit(hosts != ["openaipublic.blob.core.windows.net"])
sys.exit("the tokenizer needed no network")
EOF
