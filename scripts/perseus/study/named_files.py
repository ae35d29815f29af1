"""What is wrong with the files that a configuration names; their paths start from `root`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perseus.study.entities import is_weights_file
from perseus.study.image_files import image_files
from perseus.study.traces import read_gaps_s

Json = Any


def weights_problems(at: str, model: Mapping[str, Json], root: Path) -> Iterator[str]:
    weights = model.get("weights")
    if not isinstance(weights, str) or not is_weights_file(weights):
        return
    yield from _brace_problems(f"{at}.weights", weights)
    if not (root / weights).is_file():
        yield (
            f"{at}.weights: there is no file {weights!r} (a state_dict file, 'random',"
            " 'DEFAULT' or a torchvision weights name such as IMAGENET1K_V1)"
        )


def images_problems(at: str, model: Mapping[str, Json], root: Path) -> Iterator[str]:
    folder = model.get("images")
    if not isinstance(folder, str):
        return
    try:
        for path in image_files(root / folder):
            yield from _brace_problems(f"{at}.images", str(Path(folder, path.name)))
    except (FileNotFoundError, NotADirectoryError):
        yield f"{at}.images: there is no folder {folder!r} (of PNG or JPEG files)"
    except (OSError, ValueError) as error:
        yield f"{at}.images: {folder!r} cannot be used: {error}"


def trace_problems(at: str, arrivals: Mapping[str, Json], root: Path) -> Iterator[str]:
    trace = arrivals.get("trace")
    if not isinstance(trace, str):
        return
    yield from _brace_problems(f"{at}.trace", trace)
    try:
        read_gaps_s(root / trace)
    except FileNotFoundError:
        yield f"{at}.trace: there is no file {trace!r} (one arrival time in seconds per line)"
    except (OSError, ValueError) as error:
        yield f"{at}.trace: {error}"


def _brace_problems(at: str, path: str) -> Iterator[str]:
    if "{" in path or "}" in path:
        yield f"{at}: {path!r} has a brace, which Snakemake takes for a wildcard (rename it)"
