"""Snakemake as its command, without what every start of it costs.

A process of its own is forked from one that has imported Snakemake and what the rules and the fake
steps import, but not Perseus, which tests edit. In it, files of Perseus that are as they are here
are not parsed once more for their fingerprints, and steps run without a Python of their own.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace

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
        "scipy.stats",
        "tritonclient.grpc",
    ]
)
Parsed = Mapping[str, tuple[bytes, str, frozenset[str]]]


def run_snakemake(root: Path, arguments: Sequence[str], path: Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of Snakemake in the folder `root`.

    The folder `path` comes before those of the packages that are installed.
    """
    said = root / "output.txt", root / "errors.txt"
    process = WARM.Process(target=_run, args=(root, arguments, path, *said, _parsed()))
    process.start()
    process.join(LIMIT_S)
    assert process.exitcode is not None, "Snakemake hangs"
    return process.exitcode, *(each.read_text() for each in said)


@cache
def _parsed() -> Parsed:
    """Of each file of Python: its text, the hash of its code, and what it imports."""
    from perseus.study.fingerprint import Sources

    sources = Sources(SCRIPTS)
    found = {}
    for path in _files(SCRIPTS):
        source = sources._read(path)
        found[path] = (SCRIPTS / path).read_bytes(), source.digest, source.imports
    return found


def _files(scripts: Path) -> set[str]:
    return {str(path.relative_to(scripts)) for path in scripts.rglob("*.py")}


def _run(
    root: Path, arguments: Sequence[str], path: Path, output: Path, errors: Path, parsed: Parsed
) -> None:
    from snakemake.cli import main

    gc.disable()  # it is over in a second
    os.chdir(root)
    sys.path.insert(0, str(path))
    sys.dont_write_bytecode = True
    for said, stream in ((output, sys.stdout), (errors, sys.stderr)):
        with said.open("w") as file:
            os.dup2(file.fileno(), stream.fileno())
    _run_steps_here()
    _remember(root / "scripts", parsed)
    main(arguments)


def _run_steps_here() -> None:
    """In a thread of Snakemake each."""
    from snakemake.script import PythonScript

    def evaluate(step: PythonScript, edit: bool = False) -> None:
        job = SimpleNamespace(**vars(step), rule=step.rulename)
        exec(step.source, {"__name__": "__main__", "snakemake": job})

    PythonScript.evaluate = evaluate


def _remember(scripts: Path, parsed: Parsed) -> None:
    """Only where the same modules are found, and read by the same code, as in the repository."""
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
