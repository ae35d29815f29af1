"""requirements.in, requirements.txt and envs/perseus.yaml name the same packages."""

import re
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def wanted():
    """The lines of requirements.in above and below its line '# development'."""
    parts = (ROOT / "requirements.in").read_text().split("# development\n")
    lines = ([line.split("#")[0].strip() for line in part.splitlines()] for part in parts)
    needed, development = ([Requirement(line) for line in part if line] for part in lines)
    return needed, development


def pins(lines):
    pairs = (re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups() for line in lines)
    return {canonicalize_name(name): version for name, version in pairs}


def pinned():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return pins(line for line in lines if not line.startswith("#"))


def test_every_direct_dependency_is_pinned_as_it_is_wanted():
    needed, development = wanted()
    for requirement in [*needed, *development]:
        version = pinned().get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not in requirements.txt: make requirements.txt"
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement}: {version}"
        )


def test_the_pins_fit_a_cpu_and_a_cuda_build_of_torch():
    names = pinned()
    assert names["torch"] == "2.13.0"
    assert {"nvidia-pytriton", "nvidia-ml-py"} <= names.keys()
    cuda = [n for n in names if re.match(r"triton$|cuda-|nvidia-(?!pytriton|ml-py)", n)]
    assert not cuda


def test_the_conda_environment_has_the_same_pins():
    environment = yaml.safe_load((ROOT / "envs" / "perseus.yaml").read_text())
    (pip,) = (item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    needed, _ = wanted()
    names = {canonicalize_name(requirement.name) for requirement in needed}
    expected = {name: version for name, version in pinned().items() if name in names}
    assert pins(pip) == expected
