"""Hand one job of Snakemake to Kubernetes: python3 submit.py OPTIONS JOBSCRIPT; prints its id."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml


def job(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The job of job.yaml that runs a script in this folder, on a node that can give it all."""
    manifest = yaml.safe_load(Path(__file__).with_name("job.yaml").read_text())
    manifest["spec"]["activeDeadlineSeconds"] = options.runtime_min * 60
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container |= {"command": ["/bin/sh", options.jobscript], "workingDir": str(folder)}
    amounts = {"cpu": str(options.cpus), "memory": f"{options.mem_mb}M"}
    if options.gpus:
        amounts["nvidia.com/gpu"] = str(options.gpus)
    # Requests equal to limits: the kubelet may then give a pod CPUs of its own.
    container["resources"] = {"requests": amounts, "limits": amounts}
    if options.alone:
        # Kubernetes keeps to it both ways: no pod comes later to the node of this one, either.
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
