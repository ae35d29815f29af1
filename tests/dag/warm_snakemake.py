"""Snakemake and scripts that call it, without the cost of starting Python each time.

Each command runs in a fork of one process. This process has imported Snakemake, Perseus, and the
imports of the rules and fake steps. If a test has edited Perseus, the fork imports Perseus again.
The fork reuses the fingerprints that the first process computed for unchanged files. Steps run in
threads instead of new Python processes.
"""

from __future__ import annotations

import filecmp
import gc
import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
LIMIT_S = 120
WARM = multiprocessing.get_context("forkserver")
WARM.set_forkserver_preload(
    [
        "pytest",
        "jsonschema",
        "pandas",
        "yte",
        "snakemake.cli",
        "snakemake.report.html_reporter",
        "smart_open",
        "argparse_dataclass",
        "packaging.version",
        "platformdirs",
        "pynvml",
        "aiohttp",
        "nbformat",
        "prometheus_client",
        "pyarrow.parquet",
        "matplotlib.backends.backend_svg",
        "pandera.pandas",
        "jinja2",
        "scipy.stats",
        "tritonclient.grpc",
        "dag.first_use",
        "perseus.measurement.measure",
        "perseus.measurement.moved_images",
        "perseus.models.own_files",
        "perseus.report.figures",
        "perseus.results.compare.asked",
        "perseus.results.measured",
        "perseus.serving.triton_wheel",
        "perseus.study.measure_tasks",
        "perseus.study.read",
    ]
)
Parsed = Mapping[str, tuple[bytes, str, frozenset[str]]]


def run_snakemake(root: Path, arguments: Sequence[str], path: Path) -> tuple[int, str, str]:
    """Run Snakemake in the folder `root` and return its exit code, stdout and stderr.

    Python searches the folder `path` before the installed packages.
    """
    return _run(_snakemake, root, arguments, path)


def run_script(root: Path, arguments: Sequence[str], path: Path) -> tuple[int, str, str]:
    """Run the script `arguments[0]` like `run_snakemake`. The script may end with Snakemake."""
    return _run(_script, root, arguments, path)


def _run(
    what: Callable[[Sequence[str]], None], root: Path, arguments: Sequence[str], path: Path
) -> tuple[int, str, str]:
    messages = root / "output.txt", root / "errors.txt"
    here = dict(os.environ), _parsed()
    _start()
    process = WARM.Process(target=_inside, args=(what, root, arguments, path, *messages, *here))
    process.start()
    process.join(LIMIT_S)
    assert process.exitcode is not None, "Snakemake hangs"
    return process.exitcode, *(each.read_text() for each in messages)


@cache
def _start() -> None:
    """Start the process from which each command forks.

    Python 3.11 does not pass `sys.path` to this process, so the function sets PYTHONPATH.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        ensure_running()


@cache
def _parsed() -> Parsed:
    """Return for each Python file its text, the hash of its code, and its imports."""
    from perseus.study.fingerprint import Sources

    sources = Sources(SCRIPTS)
    found = {}
    for path in _files(SCRIPTS):
        source = sources._read(path)
        found[path] = (SCRIPTS / path).read_bytes(), source.digest, source.imports
    return found


def _files(scripts: Path) -> set[str]:
    return {str(path.relative_to(scripts)) for path in scripts.rglob("*.py")}


def _inside(
    what: Callable[[Sequence[str]], None],
    root: Path,
    arguments: Sequence[str],
    path: Path,
    output: Path,
    errors: Path,
    environment: Mapping[str, str],
    parsed: Parsed,
) -> None:
    gc.disable()  # the process ends within seconds
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(root)
    sys.path.insert(0, str(path))
    sys.dont_write_bytecode = True
    for message, stream in ((output, sys.stdout), (errors, sys.stderr)):
        with message.open("w") as file:
            os.dup2(file.fileno(), stream.fileno())
    _run_steps_here()
    _take_library(root / "scripts" / "perseus")
    _remember(root / "scripts", parsed)
    what(arguments)


def _snakemake(arguments: Sequence[str]) -> None:
    from snakemake.cli import main

    main(arguments)


def _script(arguments: Sequence[str]) -> None:
    python = [sys.executable, "-m", "snakemake"]

    start = subprocess.Popen

    def started(command: Sequence[str]) -> None:
        assert command[: len(python)] == python
        subprocess.Popen = start
        _snakemake(command[len(python) :])

    subprocess.Popen = started
    sys.argv = list(arguments)
    sys.path.insert(0, str(Path(arguments[0]).parent.absolute()))
    runpy.run_path(arguments[0], run_name="__main__")


def _run_steps_here() -> None:
    """Run each step in a thread of Snakemake instead of a new Python process, and touch files
    without pauses."""
    from snakemake.executors import touch
    from snakemake.script import PythonScript

    touch.Executor.SLEEPING_TIME = 0

    def evaluate(step: PythonScript, edit: bool = False) -> None:
        job = SimpleNamespace(**vars(step), rule=step.rulename)
        exec(step.source, {"__name__": "__main__", "snakemake": job})

    PythonScript.evaluate = evaluate


def _take_library(folder: Path) -> None:
    """If the modules in `folder` equal the imported modules, use the imported modules.

    Otherwise, remove the imported modules, so that Python imports the modules in `folder`.
    """
    here = SCRIPTS / "perseus"
    mine, theirs = (
        {path.relative_to(root) for path in root.rglob("*.*") if path.suffix != ".pyc"}
        for root in (here, folder)
    )
    same = mine == theirs and not any(filecmp.cmpfiles(here, folder, mine)[1:])
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] != "perseus":
            continue
        if not same:
            del sys.modules[name]
        elif hasattr(module, "__path__"):
            module.__path__ = [path.replace(str(here), str(folder)) for path in module.__path__]


def _remember(scripts: Path, parsed: Parsed) -> None:
    """Reuse the hashes and imports in `parsed` if `scripts` has the same files and computes
    fingerprints with the same code."""
    reader = "perseus/study/fingerprint.py"
    if _files(scripts) != set(parsed) or (scripts / reader).read_bytes() != parsed[reader][0]:
        return
    sys.path.insert(0, str(scripts))
    from perseus.study.fingerprint import Sources, _Source

    read = Sources._read

    def remembered(self: Sources, path: str) -> _Source:
        text, digest, imports = parsed.get(path, (None, "", frozenset()))
        if self._folder == scripts and (scripts / path).read_bytes() == text:
            return _Source(digest, imports)
        return read(self, path)

    Sources._read = remembered
