"""Submit one job of Snakemake to Kubernetes, and print the id of the job.

python3 submit.py OPTIONS JOBSCRIPT
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml


def job(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the manifest of a Kubernetes job that runs the script `options.jobscript` in `folder`.

    The manifest is the template job.yaml with the command and the resources in `options`.
    """
    manifest = yaml.safe_load(Path(__file__).with_name("job.yaml").read_text())
    pod = manifest["spec"]["template"]["spec"]
    # The time limit of a pod begins on its node. The time limit of a Kubernetes job
    # would also include the time in which the pod waits for a node.
    pod["activeDeadlineSeconds"] = options.runtime_min * 60
    (container,) = pod["containers"]
    first = Path(__file__).with_name("pod.py").read_text()
    command = ["python3", "-c", first, options.jobscript]
    container |= {"command": command, "workingDir": str(folder)}
    amounts = {"cpu": str(options.cpus), "memory": f"{options.mem_mb}M"}
    if options.gpus:
        amounts["nvidia.com/gpu"] = str(options.gpus)
    # The kubelet gives a pod CPUs of its own only if the requests of the pod equal its limits.
    container["resources"] = {"requests": amounts, "limits": amounts}
    if options.alone:
        # Kubernetes places this pod on a node without pods of Perseus, and places no other pod of
        # Perseus on this node while this pod runs.
        others = {"labelSelector": {"matchLabels": {"app": "perseus"}}}
        apart = [others | {"topologyKey": "kubernetes.io/hostname"}]
        never = "requiredDuringSchedulingIgnoredDuringExecution"
        pod["affinity"] = {"podAntiAffinity": {never: apart}}
    return manifest


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpus", type=int, required=True)
    parser.add_argument("--mem-mb", type=int, required=True)
    parser.add_argument("--runtime-min", type=int, required=True)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="no other pod of Perseus on the node")
    parser.add_argument("jobscript")
    manifest = job(parser.parse_args(), Path.cwd())
    create = ["kubectl", "create", "--filename=-", "--output=jsonpath={.metadata.name}"]
    sys.exit(subprocess.run(create, input=json.dumps(manifest), text=True).returncode)


if __name__ == "__main__":
    main()
