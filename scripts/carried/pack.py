"""Pack a study for a machine with a GPU and PyTorch on which you cannot install packages.

export PYTHONPATH=scripts
python scripts/carried/pack.py STUDY.yaml FOLDER [--python 3.12] [--libpython FILE]

The script writes perseus-carried.tar.xz into FOLDER. The archive contains the package perseus, the
Triton server, the Python backend for PyTorch, the client, and the tasks and traces of the study.
With the option --python, state the version of the python3 of the other machine. If the other
machine has no libpython of this version, pack one with --libpython. On the other machine, run:

tar xf perseus-carried.tar.xz && python3 perseus-carried/run.py RESULTS

The python3 of the other machine must have the packages torch, torchvision, numpy, scipy, pandas,
pyarrow, pydantic (2.10 or later), psutil, grpcio, protobuf, packaging, python-rapidjson, ml-dtypes,
prometheus-client, aiohttp, pyyaml, pillow and nvidia-ml-py.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import io
import json
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from job import Job

from perseus.host.files import whole
from perseus.host.version import VERSION
from perseus.study import files as study_files
from perseus.study import planning
from perseus.study.cells import Cell, Study
from perseus.study.experiments.peak import DEDICATED, Run
from perseus.study.problems import ConfigError
from perseus.study.read import read_study

ROOT = Path(__file__).resolve().parents[2]
NAME = "perseus-carried"
# Prefix of the shared libraries of Python in the wheel of nvidia-pytriton. For example, the stub
# for Python 3.13 needs libpython3-419a3a08.13.so.1.0.
LIBPYTHON = "libpython3-"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--python", default="3.12", help="version of Python on the other machine (default 3.12)"
    )
    parser.add_argument(
        "--libpython", type=Path, help="file libpython of this version, for a machine without it"
    )
    parser.add_argument("--version", action="version", version=f"Perseus {VERSION}")
    asked = parser.parse_args()
    try:
        configuration = yaml.safe_load(asked.study.read_text())
        study = read_study(configuration, prices=ROOT / "config/prices.csv", folder=ROOT)
        archive = pack(study, asked.folder, asked.python, asked.libpython)
    except (ConfigError, OSError, ValueError, yaml.YAMLError) as error:
        sys.exit(str(error))
    print(f"{archive}: {archive.stat().st_size / 2**20:.0f} MiB")


def pack(study: Study, folder: Path, python: str, libpython: Path | None) -> Path:
    """Write the archive into `folder`, and return its path.

    `python` is the version of Python on the other machine. Raises ValueError for a study that
    cannot be packed.
    """
    job = job_of(study)
    told = json.dumps(job.plain(), indent=1).encode()
    path = folder / f"{NAME}.tar.xz"
    with (
        whole(path) as partial,
        tarfile.open(partial, "w:xz", preset=2, dereference=True) as archive,
    ):
        for source, name in files(python, libpython):
            archive.add(source, f"{NAME}/{name}", filter=_nobody_s)
        for named, carried in job.carried(Path(NAME)).items():
            archive.add(ROOT / named, str(carried), filter=_nobody_s)
        entry = tarfile.TarInfo(f"{NAME}/study.json")
        entry.size = len(told)
        archive.addfile(entry, io.BytesIO(told))
    return path


def job_of(study: Study) -> Job:
    """Return the tasks of the study, which are the same as in the Snakemake workflow.

    Raises ValueError for a study that cannot be packed.
    """
    runtimes = {server.runtime for server in study.servers.values()}
    launchers = {server.launcher for server in study.servers.values()}
    if runtimes != {"pytorch"} or launchers != {"embedded"}:
        raise ValueError(
            "a study can be packed only if all servers have runtime: pytorch and launcher:"
            " embedded, but the servers of this study have"
            f" {', '.join(sorted(runtimes | launchers))}"
        )
    for name, model in study.models.items():
        if model.weights_file or model.images:
            raise ValueError(f"{name}: a model with `images` or a weights file cannot be packed")
    for scenario in study.scenarios.values():
        for tenant in scenario.tenants:
            if tenant.preprocessing:
                raise ValueError(f"{tenant.name}: a tenant with `preprocessing` cannot be packed")
    if any(study.copies_cells(cell) for cell in study.cells.values()):
        raise ValueError(
            "a study cannot be packed if it predicts pairs of models (predict: true) from"
            " measurements of copies of a model"
        )
    return Job(
        models={name: planning.export_task(study, name) for name in study.models},
        repositories={id: planning.repository_task(study, id) for id in study.scenarios},
        cells=tuple(planning.measure_task(study, cell) for cell in in_turn(study)),
        dedicated={
            cell.id: tuple(each.id for each in study.dedicated_cells(cell))
            for cell in study.cells.values()
        },
        earlier={
            cell.id: tuple(each.id for each in study.earlier_cells(cell))
            for cell in study.cells.values()
        },
        tables=planning.tables_task(study),
        files=tuple(dict.fromkeys([*study_files.trace(study), *_of_experiments(study)])),
    )


def _of_experiments(study: Study) -> Iterator[str]:
    for cell in study.cells.values():
        yield from study_files.experiment_files(cell)


def in_turn(study: Study) -> list[Cell]:
    """Return the cells (measurements) in their order on the other machine.

    The most important cells come first, because the time may not suffice for the last cells:

    1. the dedicated peaks (peaks of a single model) that the cells of shared servers need
    2. the cells of shared servers
    3. the dedicated peaks that the cells of single models need
    4. the other cells of single models
    5. all other dedicated peaks
    """
    cells = list(study.cells.values())
    shared = [cell for cell in cells if len(cell.scenario.tenants) > 1]

    def needed(by: Iterable[Cell]) -> set[str]:
        return {each.id for cell in by for each in study.dedicated_cells(cell)}

    first, later = needed(shared), needed(cells)

    def rank(cell: Cell) -> int:
        if cell.id in first:
            return 0
        if cell in shared:
            return 1
        if cell.id in later:
            return 2
        return 4 if cell.run in (DEDICATED, Run.dedicated(cell.preset)) else 3

    return sorted(cells, key=rank)


def files(python: str, libpython: Path | None) -> Iterator[tuple[Path, str]]:
    """Yield each file of the archive as (its path on this machine, its name in the archive)."""
    for name in ("run.py", "job.py"):
        yield Path(__file__).with_name(name), name
    scripts = ROOT / "scripts"
    backends = [scripts / "backends" / name for name in ("pytorch/model.py", "perseus_tensors.py")]
    facts = scripts / "perseus/study/architectures.csv"  # has accuracies for the table `catalogue`
    for path in [*(scripts / "perseus").rglob("*.py"), facts, *backends]:
        yield path, f"scripts/{path.relative_to(scripts)}"
    # Put the packages below beside the package perseus, so that Python finds them.
    server = _package("pytriton")
    triton, site = server / "tritonserver", server.parent
    stub = triton / "python_backend_stubs" / python / "triton_python_backend_stub"
    if not stub.exists():
        raise ValueError(
            f"nvidia-pytriton has no triton_python_backend_stub for Python {python}: choose another"
            " version with --python"
        )
    libraries = [
        path
        for path in (site / "nvidia_pytriton.libs").iterdir()
        if not path.name.startswith(LIBPYTHON) or f"{python.removeprefix('3')}.so" in path.name
    ]
    backend = triton / "backends" / "python"
    paths = [triton / "bin" / "tritonserver", stub, *libraries]
    paths += [backend / "libtriton_python.so", backend / "triton_python_backend_utils.py"]
    for name in ("tritonclient", "hpack"):
        paths += _package(name).rglob("*.py")
    for name in ("nvidia-pytriton", "tritonclient", "hpack"):
        of_package = importlib.metadata.distribution(name)
        told = [file for file in of_package.files or () if file.name == "METADATA"]
        paths += [Path(str(of_package.locate_file(file))) for file in told]
    for path in paths:
        yield path, f"scripts/{path.relative_to(site)}"
    if libpython is not None:
        yield libpython, f"scripts/nvidia_pytriton.libs/libpython{python}.so.1.0"


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"the package {name} is missing: pip install -r requirements.txt")
    return Path(next(iter(spec.submodule_search_locations)))


def _nobody_s(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main()
