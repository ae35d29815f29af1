"""Write the versions of the installed packages into one file per section of requirements.in.

Each installed package goes into the file of the first section that needs the package, directly or
as a dependency.
"""

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILES = {
    "": ("requirements.txt", "Pinned packages for measurements, tables, figures and the report"),
    "export": ("envs/export.txt", "Pinned packages to export networks and for the runtime pytorch"),
    "development": ("envs/development.txt", "Pinned packages for the tests and for `make lint`"),
}
"""For each section of requirements.in: the file of its pins, and the first line of this file."""

OF_TORCH = re.compile(r"triton|cuda-.*|nvidia-(cu|nccl|nvjitlink|nvshmem|nvtx).*")
"""Names of packages that the CUDA build of torch pins itself. They get no pin here, because the CPU
build of torch needs none of them."""


def sections() -> dict[str, list[Requirement]]:
    """Return the requirements of each section of requirements.in."""
    found: dict[str, list[Requirement]] = {name: [] for name in FILES}
    section = ""
    for line in (ROOT / "requirements.in").read_text().splitlines():
        requirement, _, comment = line.partition("#")
        if requirement.strip():
            found[section].append(Requirement(requirement))
        elif comment.strip() in FILES:
            section = comment.strip()
    return found


def needed(requirements: Iterable[Requirement]) -> set[str]:
    """Return the names of these packages and of all their dependencies, also indirect ones."""
    names: set[str] = set()
    seen: set[str] = set()
    todo = list(requirements)
    while todo:
        requirement = todo.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        name = canonicalize_name(requirement.name)
        if OF_TORCH.fullmatch(name):
            continue
        names.add(name)
        for text in metadata.requires(name) or []:
            dependency = Requirement(text)
            extras = requirement.extras or {""}
            if not dependency.marker or any(
                dependency.marker.evaluate({"extra": extra}) for extra in extras
            ):
                todo.append(dependency)
    return names


def main() -> None:
    written: set[str] = set()
    for section, requirements in sections().items():
        path, about = FILES[section]
        names = needed(requirements) - written
        written |= names
        packages = sorted((metadata.distribution(name) for name in names), key=_order)
        pins = [f"{each.name}=={each.version.partition('+')[0]}" for each in packages]
        head = f"# {about}.\n# Made from requirements.in by: make requirements.txt"
        (ROOT / path).write_text("\n".join([head, *pins, ""]))


def _order(package: metadata.Distribution) -> str:
    return package.name.lower()


if __name__ == "__main__":
    main()
