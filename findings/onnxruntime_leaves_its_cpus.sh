#!/usr/bin/env bash
# ONNX Runtime 1.31.1 runs a thread on a CPU that taskset excludes.
#
# Expected: In a process that taskset pins to one CPU, ONNX Runtime starts a pool of one thread, on this CPU.
# Behaviour: By default, the pool has one thread per physical core of the host, and ONNX Runtime pins each thread to its
#   own CPU, even outside the CPU mask of the process. A thread may widen its mask unless a cpuset forbids it. Two
#   servers that taskset separates therefore share CPUs. intra_op_num_threads=1 prevents this.
# Output on 2 vCPUs (Intel Xeon), Debian 12, Python 3.11:
#   process may use CPUs [0]; threads of the session use CPUs [1]; with intra_op_num_threads=1 []
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ "$(nproc)" -lt 2 ]; then echo "This needs two CPUs or more; nothing was tested."; exit 77; fi
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" venv/bin/python - <<'EOF'
import os
import onnxruntime
from onnx import TensorProto, helper

value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in ("x", "y")]
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", value[:1], value[1:])
network = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def cpus_of_new_threads(**settings):
    """Return the session and the CPUs of the threads that it starts."""
    before = set(os.listdir("/proc/self/task"))
    options = onnxruntime.SessionOptions()
    for name, value in settings.items():
        setattr(options, name, value)
    session = onnxruntime.InferenceSession(network, options)
    threads = set(os.listdir("/proc/self/task")) - before
    return session, set().union(*(os.sched_getaffinity(int(thread)) for thread in threads))


mask = os.sched_getaffinity(0)
_, default = cpus_of_new_threads()
_, single = cpus_of_new_threads(intra_op_num_threads=1)
print(f"process may use CPUs {sorted(mask)}; threads of the session use CPUs {sorted(default)}; "
      f"with intra_op_num_threads=1 {sorted(single)}")
assert default - mask, "no thread left the mask"
assert not single - mask
EOF
