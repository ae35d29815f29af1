"""Tests that all files name the same packages, versions and checks."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PARTS = {"Snakefile", "config", "envs", "profiles", "report", "rules", "scripts"}  # the workflow


PINS = ("requirements.txt", "envs/export.txt", "envs/development.txt")


INSTALL = "pip install --python .venv/bin/python"
SERVER = "--quiet --no-deps -r envs/triton.txt"


def wanted():
    """Return the requirements of each part of requirements.in, in the order of PINS."""
    parts = re.split("# (?:export|development)\n", (ROOT / "requirements.in").read_text())
    lines = ([line.split("#")[0].strip() for line in part.splitlines()] for part in parts)
    return [[Requirement(line) for line in part if line] for part in lines]


def pins(lines):
    pairs = (re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups() for line in lines)
    return {canonicalize_name(name): version for name, version in pairs}


def pinned(*files):
    lines = [line for file in files or PINS for line in (ROOT / file).read_text().splitlines()]
    return pins(line for line in lines if not line.startswith("#"))


@pytest.mark.parametrize(("file", "part"), [*zip(PINS, range(3), strict=True)])
def test_every_direct_dependency_is_pinned_as_it_is_wanted(file, part):
    for requirement in wanted()[part]:
        version = pinned(file).get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not in {file}: make requirements.txt"
        assert requirement.specifier.contains(version, prereleases=True), (
            f"{requirement}: {version}"
        )


def test_a_package_is_pinned_once_and_only_exports_install_torch():
    of_each = [set(pinned(file)) for file in PINS]
    assert sum(map(len, of_each)) == len(set.union(*of_each))
    assert {"torch", "torchvision"} <= of_each[1]
    assert "pytest" in of_each[2]


def test_the_pins_fit_a_cpu_and_a_cuda_build_of_torch():
    names = pinned()
    assert names["torch"] == "2.13.0"
    assert "nvidia-ml-py" in names
    cuda = [n for n in names if re.match(r"triton$|cuda-|nvidia-(?!ml-py)", n)]
    assert not cuda


def test_the_conda_environment_has_the_same_pins():
    environment = yaml.safe_load((ROOT / "envs" / "perseus.yaml").read_text())
    (pip,) = (item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    needed, export, _ = wanted()
    names = {canonicalize_name(requirement.name) for requirement in needed + export}
    expected = {name: version for name, version in pinned().items() if name in names}
    assert pins(pip) == expected


def test_triton_s_server_is_installed_everywhere_without_what_its_package_asks_for():
    """The package requires NumPy 1, which no other package uses."""
    lines = (ROOT / "envs" / "triton.txt").read_text().splitlines()
    (server,) = (line for line in lines if not line.startswith("#"))
    assert server.startswith("nvidia-pytriton==") and "nvidia-pytriton" not in pinned()
    in_conda = (ROOT / "envs" / "perseus.post-deploy.sh").read_text()
    assert f"pip install --no-deps {server}\n" in in_conda
    for file in ("Makefile", "Containerfile"):
        text = (ROOT / file).read_text().replace("\\\n", " ")
        assert re.search(r"(?i)pip.install.* --no-deps\s+-r envs/triton\.txt", text), file


def test_every_job_with_a_script_has_the_conda_environment():
    for path in sorted((ROOT / "rules").glob("*.smk")):
        text = path.read_text()
        environments = re.findall(r"^    conda:\n        \"(.+)\"", text, re.MULTILINE)
        assert len(environments) == len(re.findall(r"^    script:", text, re.MULTILINE)), path.name
        assert {(path.parent / name).resolve() for name in environments} <= {
            ROOT / "envs" / "perseus.yaml"
        }


def instructions():
    """Return instruction and arguments of each line of the Containerfile."""
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    return [tuple(line.split(maxsplit=1)) for line in lines if line and line[0] != "#"]


def test_the_container_has_the_pins_and_the_python_of_the_conda_environment():
    steps = instructions()
    (base,) = [value for word, value in steps if word == "FROM"]
    environment = yaml.safe_load((ROOT / "envs" / "perseus.yaml").read_text())
    (python,) = (i for i in environment["dependencies"] if str(i).startswith("python="))
    assert re.fullmatch(rf"docker.io/library/python:{python[7:]}\.\d+-slim-bookworm", base)
    installed = [value for word, value in steps if word == "RUN" and "pip" in value]
    (command,) = installed
    assert "pip install --no-cache-dir -r requirements.txt -r envs/export.txt" in command
    assert ("COPY", "requirements.txt .") in steps


def test_the_container_runs_snakemake_on_the_whole_workflow_and_not_as_root():
    steps = instructions()
    users = [value for word, value in steps if word == "USER"]
    assert users == ["perseus"]
    assert steps.index(("USER", "perseus")) > max(
        i for i, (word, _) in enumerate(steps) if word in ("RUN", "COPY")
    )
    assert ("ENTRYPOINT", '["snakemake"]') in steps
    copied = {value.split()[0] for word, value in steps if word == "COPY"}
    assert copied == PARTS | {"requirements.txt"}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def made_environment(folder, *programs, target=("environment",)):
    """Run `make` in an empty folder. Return the ended process of `make`, and the arguments of each
    call of uv.

    Besides the programs of the system, PATH contains only `programs`.
    """
    for name in ("Makefile", "envs/triton.txt", "scripts/doctor.py", *PINS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    texts = {
        "uv": f'echo "$@" >> "{folder}/uv.txt"; [[ $1 != venv ]] || mkdir -p .venv',
        "python3": f'exec {sys.executable} "$@"',
        "python3.14": "[[ $1 == --version ]] && echo Python 3.14.0",  # an unsupported version
    }
    for name in programs:
        program(folder / "programs" / name, texts[name])
    done = subprocess.run(
        ["make", *target, f"PYTHON={programs[0]}"],
        cwd=folder,
        env={"PATH": f"{folder}/programs:/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    called = folder / "uv.txt"
    return done, called.read_text().splitlines() if called.exists() else []


@pytest.mark.parametrize(("python", "asked"), [("python3", "python3"), ("python3.14", "3.13")])
def test_make_installs_with_uv_where_there_is_one(tmp_path, python, asked):
    """The name of the folder contains a space and accents."""
    done, called = made_environment(tmp_path / "my été", python, "uv")
    assert done.returncode == 0, done.stderr
    assert called == [
        f"venv --quiet --clear --seed .venv --python {asked}",
        f"{INSTALL} -r requirements.txt -r envs/export.txt",
        f"{INSTALL} {SERVER}",
    ]


@pytest.mark.parametrize(
    ("target", "installed"),
    [
        (["environment", "WITHOUT=export"], ["-r requirements.txt", SERVER]),
        (["environment", "WITHOUT=export triton"], ["-r requirements.txt"]),
        (
            ["development"],
            ["-r requirements.txt -r envs/export.txt", SERVER, "-r envs/development.txt"],
        ),
    ],
)
def test_make_installs_only_what_is_wanted(tmp_path, target, installed):
    done, called = made_environment(tmp_path, "python3", "uv", target=target)
    assert done.returncode == 0, done.stderr
    assert called[1:] == [f"{INSTALL} {packages}" for packages in installed]


@pytest.mark.parametrize(
    ("of_pip", "of_uv"),
    [
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
        ("PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL"),
        ("PIP_FIND_LINKS", "UV_FIND_LINKS"),
    ],
)
def test_uv_gets_the_package_indexes_of_pip(tmp_path, of_pip, of_uv):
    shutil.copy(ROOT / "Makefile", tmp_path)
    printed = subprocess.run(
        ["make", "--silent", f"--eval=print: ; @echo $${of_uv}", "print"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", of_pip: "https://packages.example"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == "https://packages.example\n"


def test_make_says_what_to_type_where_no_python_fits(tmp_path):
    done, called = made_environment(tmp_path, "python3.14")
    assert done.returncode != 0 and not called
    assert (
        "and python3.14 is Python 3.14.0. Install a suitable Python and name it: make PYTHON="
        in done.stderr
    )
    assert "Or install uv, with which make installs a Python" in done.stderr


def test_before_a_commit_runs_what_make_lint_runs():
    recipe = (ROOT / "Makefile").read_text().split("\nlint: development\n")[1].split("\n\n")[0]
    commands = [line.removeprefix("\t@") for line in recipe.splitlines()[1:]]
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert [hook["entry"] for hook in hooks] == [
        command.replace("$(BIN)", ".venv/bin") for command in commands
    ]
    assert {repository["repo"] for repository in config["repos"]} == {"local"}


def made() -> set[str]:
    """Return the targets of make."""
    text = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)[0].split())


def test_continuous_integration_runs_the_script_that_anybody_can_run():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())
    (job,) = workflow["jobs"].values()
    (message,) = [step["run"] for step in job["steps"] if "run" in step]
    assert message == "bash .ci/run ${{ matrix.targets }}"
    targets = job["strategy"]["matrix"]["targets"]
    assert targets[0] == "" and set(targets[1:]) <= made()
    assert workflow["permissions"] == {"contents": "read"} and "permissions" not in job
    actions = [step["uses"] for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in actions)
