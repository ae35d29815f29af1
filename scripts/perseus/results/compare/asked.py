"""Check the arguments of a comparison (`base`, `new` and `out`) before any job runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perseus.results.compare.source import CompareError, Source, read_source
from perseus.study.tasks.compare import CompareTask

USAGE = "snakemake --cores 1 compare --config base=results/default new=default.tar.gz"


def compare_task(asked: Mapping[str, Any]) -> CompareTask:
    """Return the task of the requested comparison. `asked` has the values of `base`, `new` and
    `out` from the command line.

    Raises CompareError with all problems, if a value or the results that it names are invalid.
    """
    problems: list[str] = []
    paths = {key: _path(key, asked, problems) for key in ("base", "new")}
    read = {key: _read(key, path, problems) for key, path in paths.items() if path}
    base, new = read.get("base"), read.get("new")
    if base and new and base.digest == new.digest:
        problems.append(
            "base and new are the same results. Measure the study again, or name other results"
        )
    out = asked.get("out") or f"results/compare/{_name(paths['base'])}-{_name(paths['new'])}"
    expanded = _expanded("out", str(out), problems)
    out = str(expanded or out)
    if re.search(r"[{}]", out) or Path(out).is_file():
        problems.append(
            f"out: {out!r} cannot be the folder for the comparison, because it is a file or has a"
            " brace in its name. Name another folder"
        )
    if problems or not base or not new:
        raise CompareError(problems)
    return CompareTask(
        base=base.where, new=new.where, base_digest=base.digest, new_digest=new.digest, out=out
    )


def _path(key: str, asked: Mapping[str, Any], problems: list[str]) -> Path | None:
    value = asked.get(key)
    if value is None or not str(value):
        problems.append(f"{key} is missing: name a folder or an archive of results ({USAGE})")
        return None
    return _expanded(key, str(value), problems)


def _expanded(key: str, path: str, problems: list[str]) -> Path | None:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        problems.append(f"{key}: {path}: there is no such user")
        return None


def _read(key: str, path: Path, problems: list[str]) -> Source | None:
    try:
        return read_source(path)
    except CompareError as error:
        problems += [f"{key}: {path}: {problem}" for problem in error.problems]
    except OSError as error:
        problems.append(f"{key}: {path}: {error.strerror}")
    return None


def _name(path: Path | None) -> str:
    """Return the name of a folder or archive of results, with `_` in place of each character that
    may be unsafe in a file name."""
    stem = path.resolve().name.removesuffix(".tar.gz") if path else ""
    return re.sub(r"[^A-Za-z0-9._~-]", "_", stem) or "results"
