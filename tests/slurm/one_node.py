"""A Slurm cluster with one node, this machine: munged, slurmctld and slurmd under own_world.sh."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

NODE = "perseus"
FOLDER = Path("/etc/slurm")  # a job step reads the configuration only from this folder
GPUS = 2  # devices without a driver, which Slurm can count and assign
START_S, STOP_S = 30.0, 15.0


class NoSlurmError(RuntimeError):
    """This machine cannot run the cluster. The message gives the reason."""


@contextmanager
def one_node() -> Iterator[None]:
    """Run a Slurm cluster while the context is open. The only node has all CPUs of this
    process.

    Raises NoSlurmError.
    """
    if not FOLDER.is_mount():
        raise NoSlurmError(f"{FOLDER} is that of the machine: run this by `make test-slurm`")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="slurm-")))
        scratch.chmod(0o755)  # the user of munged is not root
        for number in range(GPUS):
            os.mknod(scratch / f"gpu{number}", 0o600 | stat.S_IFCHR, os.makedev(195, number))
        for name, text in _configuration(scratch).items():
            (FOLDER / name).write_text(text)
        stack.callback(_remove_control_groups)
        stack.enter_context(_munged(scratch))
        for program in (["slurmctld", "-D"], ["slurmd", "-D", "-N", NODE]):
            stack.enter_context(_daemon(program, scratch / f"{program[0]}.out"))
        _wait(lambda: output("sinfo", "-h", "-o", "%T") == "idle", "the node is not idle", scratch)
        stack.callback(_cancel_all)
        yield


def output(*command: str) -> str:
    """Return the stripped output of a Slurm command, even if the command fails."""
    done = subprocess.run(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30
    )
    return done.stdout.strip()


def jobs() -> list[dict[str, str]]:
    """Return all jobs of the cluster as `scontrol` describes them, including ended jobs."""
    lines = output("scontrol", "--oneliner", "show", "job").splitlines()
    return [
        dict(word.split("=", 1) for word in line.split() if "=" in word)
        for line in lines
        if line.startswith("JobId=")
    ]


def _configuration(scratch: Path) -> dict[str, str]:
    """Return the texts of the files in /etc/slurm, by file name."""
    cpus = len(os.sched_getaffinity(0))
    memory_mb = psutil.virtual_memory().total * 9 // 10 // 2**20
    # ProctrackType: only this plugin ends all processes of a job. FirstJobId: the ids must be new,
    # because a killed cluster leaves control groups that are named after job ids.
    return {
        "slurm.conf": f"""\
ClusterName=one
SlurmctldHost=localhost(127.0.0.1)
AuthInfo=socket={scratch}/munge/socket
SlurmUser=root
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool
SlurmctldPidFile={scratch}/slurmctld.pid
SlurmdPidFile={scratch}/slurmd.pid
SlurmctldLogFile={scratch}/slurmctld.log
SlurmdLogFile={scratch}/slurmd.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/affinity,task/cgroup
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=10
MinJobAge=3600
FirstJobId={int(time.time()) % 50_000_000}
EnforcePartLimits=ALL
DefMemPerCPU=1000
GresTypes=gpu
NodeName=DEFAULT CPUs={cpus} RealMemory={memory_mb} Gres=gpu:{GPUS} State=UNKNOWN
NodeName={NODE} NodeHostname=localhost NodeAddr=127.0.0.1
PartitionName=main Nodes={NODE} Default=YES MaxTime=INFINITE State=UP
""",
        "cgroup.conf": """\
CgroupPlugin=cgroup/v1
ConstrainCores=yes
ConstrainRAMSpace=yes
""",
        "gres.conf": f"""\
AutoDetect=off
NodeName={NODE} Name=gpu File={scratch}/gpu[0-{GPUS - 1}]
""",
    }


@contextmanager
def _munged(scratch: Path) -> Iterator[None]:
    """Run Slurm's authentication service with its own key and socket."""
    folder, user = scratch / "munge", pwd.getpwnam("munge")
    folder.mkdir()
    key = folder / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    for path in (folder, key):
        os.chown(path, user.pw_uid, user.pw_gid)
    files = {"key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={folder / name}" for option, name in files.items()]
    command = ["munged", "--foreground", f"--socket={folder}/socket", *options]
    with _daemon(command, scratch / "munged.out", user="munge"):
        asked = ["munge", "--no-input", f"--socket={folder}/socket"]
        _wait(lambda: output(*asked).startswith("MUNGE:"), "munged does not answer", scratch)
        yield


@contextmanager
def _daemon(command: list[str], out: Path, user: str | None = None) -> Iterator[None]:
    with out.open("w") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True, user=user
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _cancel_all() -> None:
    """Cancel all jobs, so that no job outlives the cluster."""
    output("scancel", "--user=root")
    deadline = time.monotonic() + START_S
    while output("squeue", "--noheader") and time.monotonic() < deadline:
        time.sleep(0.2)


def _remove_control_groups() -> None:
    """Remove the empty control groups that Slurm leaves on the machine."""
    for top in Path("/sys/fs/cgroup").glob(f"*/slurm_{NODE}"):
        for folder in sorted((top, *filter(Path.is_dir, top.rglob("*"))), reverse=True):
            folder.rmdir()


def _wait(condition: Callable[[], bool], problem: str, scratch: Path) -> None:
    deadline = time.monotonic() + START_S
    while not condition():
        if time.monotonic() > deadline:
            logs = [*sorted(scratch.glob("*.out")), *sorted(scratch.glob("*.log"))]
            ends = "\n".join(f"{path}:\n{path.read_text()[-1000:]}" for path in logs)
            raise NoSlurmError(f"{problem} after {START_S:g} s\n{ends}")
        time.sleep(0.1)
