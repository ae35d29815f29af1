"""Find the tritonserver in the pip package nvidia-pytriton, and prepare its folder of backends."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from perseus.host.orphans import is_plain
from perseus.serving.failures import ServerError
from perseus.serving.triton_command import BACKENDS, TENSORS


@dataclass(frozen=True)
class Installation:
    """Paths of the parts of nvidia-pytriton."""

    binary: Path
    python_backend: Path
    stub: Path
    libraries: Path


def find_installation() -> Installation:
    """Return the paths of the parts of nvidia-pytriton.

    Raises ServerError if the package is missing, is incomplete, or has no stub for this version of
    Python.
    """
    # An import of the package would take seconds. The function find_spec does not import it.
    spec = importlib.util.find_spec("pytriton")
    if spec is None or not spec.submodule_search_locations:
        raise ServerError(
            f"the package nvidia-pytriton is missing from {sys.prefix}. The launcher 'embedded' "
            "needs the tritonserver of this package. Run 'pip install --no-deps -r "
            "envs/triton.txt' in this environment, or choose another launcher."
        )
    package = Path(next(iter(spec.submodule_search_locations)))
    root = package / "tritonserver"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    installation = Installation(
        binary=root / "bin" / "tritonserver",
        python_backend=root / "backends" / "python",
        stub=root / "python_backend_stubs" / version / "triton_python_backend_stub",
        libraries=package.parent / "nvidia_pytriton.libs",
    )
    if not installation.stub.exists():
        stubs = installation.stub.parents[1]
        known = sorted(
            (path.name for path in stubs.glob("3.*")), key=lambda name: int(name.split(".")[1])
        )
        raise ServerError(
            f"nvidia-pytriton in {package} has no stub for Python {version} "
            f"(only for {', '.join(known) or 'none'}). Use one of these versions."
        )
    for path in (installation.binary, installation.python_backend, installation.libraries):
        if not path.exists():
            raise ServerError(
                f"nvidia-pytriton is incomplete: {path} is missing. Run "
                "'pip install --force-reinstall --no-deps nvidia-pytriton' in this environment."
            )
    return installation


def environment(installation: Installation, folder: Path) -> dict[str, str]:
    """Return the environment variables with which a server finds the libraries of nvidia-pytriton
    and the libraries of this Python."""
    libraries = [
        str(folder / "libraries"),
        str(installation.libraries),
        sysconfig.get_config_var("LIBDIR"),
    ]
    # The stub uses the packages of the first python3 on PATH, which must be this environment.
    search = [str(Path(sys.executable).parent)]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": _joined(libraries, os.environ.get("LD_LIBRARY_PATH")),
        "PATH": _joined(search, os.environ.get("PATH")),
    }


def _joined(first: list[str], rest: str | None) -> str:
    return os.pathsep.join([*first, rest] if rest else first)


def require_plain(folder: Path) -> None:
    """Raise ServerError if the path of a folder has characters that Triton's Python backend does
    not support."""
    if not is_plain(folder):
        raise ServerError(
            "the path of the server's temporary folder may have only the characters a-z, A-Z, 0-9"
            f" and ._-/, but the folder is {folder}. Set TMPDIR to another folder."
        )


def fill_folder(folder: Path, installation: Installation, backends: Path) -> None:
    """Copy the backends into the folder of a server. If the stub needs it, link a libpython.

    The stub is the process that runs a Python backend. It may need the libpython of this Python.
    Raises ServerError if this libpython is missing. Also raises ServerError if the path of the
    folder has characters that Triton's Python backend does not support.
    """
    require_plain(folder.parent)
    _link_libpython(folder / "libraries", installation)
    directory = folder / "backends"
    python = directory / "python"
    python.mkdir(parents=True)
    # Copy the files, because Triton changes the mode of a stub that it cannot run. Through a link,
    # Triton would change the mode of the installed stub.
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        shutil.copy2(installation.python_backend / name, python)
    shutil.copy2(installation.stub, python)
    shutil.copy2(BACKENDS / TENSORS, python)  # the stub of each runtime imports from this folder
    for backend in backends.iterdir():
        if (backend / "model.py").is_file():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(backend, directory / backend.name, ignore=ignored)


def _link_libpython(folder: Path, installation: Installation) -> None:
    """Link the libpython of this Python for the stub, if the stub needs it.

    The stub for Python 3.13 needs the libpython of nvidia-pytriton. This libpython loads the
    modules `math` and `_datetime` from files. If these modules are built into this Python, as in
    Debian, the files do not exist, and the stub would not start. In this case, the function links
    the libpython of this Python under the file name of nvidia-pytriton's libpython.
    """
    folder.mkdir(parents=True)
    if "_datetime" not in sys.builtin_module_names:
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    own = Path(sysconfig.get_config_var("LIBDIR"), f"libpython{version}.so.1.0")
    for wanted in installation.libraries.glob(f"libpython3-*.{sys.version_info.minor}.so*"):
        if not own.exists():
            raise ServerError(
                f"{own} is missing, and the server's Python stub needs it: install the package of"
                f" your system that contains it (Debian, Ubuntu: apt-get install"
                f" libpython{version})."
            )
        (folder / wanted.name).symlink_to(own)
