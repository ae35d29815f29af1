"""What is installed and what checks the code is said alike wherever it is said."""

import re
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PARTS = {"Snakefile", "config", "envs", "profiles", "report", "rules", "scripts"}  # the workflow


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


def test_every_job_with_a_script_has_the_conda_environment():
    for path in sorted((ROOT / "rules").glob("*.smk")):
        text = path.read_text()
        environments = re.findall(r"^    conda:\n        \"(.+)\"", text, re.MULTILINE)
        assert len(environments) == len(re.findall(r"^    script:", text, re.MULTILINE)), path.name
        assert {(path.parent / name).resolve() for name in environments} <= {
            ROOT / "envs" / "perseus.yaml"
        }


def instructions():
    """(instruction, arguments) of each line of the Containerfile, continued lines joined."""
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    return [tuple(line.split(maxsplit=1)) for line in lines if line and line[0] != "#"]


def test_the_container_has_the_pins_and_the_python_of_the_conda_environment():
    said = instructions()
    (base,) = [value for word, value in said if word == "FROM"]
    environment = yaml.safe_load((ROOT / "envs" / "perseus.yaml").read_text())
    (python,) = (i for i in environment["dependencies"] if str(i).startswith("python="))
    assert re.fullmatch(rf"docker.io/library/python:{python[7:]}\.\d+-slim-bookworm", base)
    installed = [value for word, value in said if word == "RUN" and "pip" in value]
    assert installed == ["python -m pip install --no-cache-dir -r requirements.txt"]
    assert ("COPY", "requirements.txt .") in said


def test_the_container_runs_snakemake_on_the_whole_workflow_and_not_as_root():
    said = instructions()
    users = [value for word, value in said if word == "USER"]
    assert users == ["perseus"]
    assert said.index(("USER", "perseus")) > max(
        i for i, (word, _) in enumerate(said) if word in ("RUN", "COPY")
    )
    assert ("ENTRYPOINT", '["snakemake"]') in said
    copied = {value.split()[0] for word, value in said if word == "COPY"}
    assert copied == PARTS | {"requirements.txt"}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_before_a_commit_runs_what_make_lint_runs():
    recipe = (ROOT / "Makefile").read_text().split("\nlint: environment\n")[1].split("\n\n")[0]
    commands = [line.removeprefix("\t@") for line in recipe.splitlines()[1:]]
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert [hook["entry"] for hook in hooks] == [
        command.replace("$(BIN)", ".venv/bin") for command in commands
    ]
    assert {repository["repo"] for repository in config["repos"]} == {"local"}


def made() -> set[str]:
    """The targets of make."""
    text = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)[0].split())


def test_continuous_integration_runs_the_script_that_anybody_can_run():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())
    (job,) = workflow["jobs"].values()
    (said,) = [step["run"] for step in job["steps"] if "run" in step]
    assert said == "bash .ci/run ${{ matrix.targets }}"
    targets = job["strategy"]["matrix"]["targets"]
    assert targets[0] == "" and set(targets[1:]) <= made()
    assert workflow["permissions"] == {"contents": "read"} and "permissions" not in job
    actions = [step["uses"] for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in actions)
