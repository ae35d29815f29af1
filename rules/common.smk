"""The study, read once from the configuration, and what all rules share."""

import ast
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

sys.path.insert(0, str(Path(workflow.basedir, "scripts")))

from perseus.host import gpu
from perseus.study import plan
from perseus.study.config import ConfigError, load_study

try:
    STUDY = load_study(config, Path(workflow.basedir))
except ConfigError as error:
    raise WorkflowError(str(error)) from None

RESULTS = f"results/{STUDY.name}"
REPOSITORY = f"model_repository/{STUDY.name}"
LOGS = f"logs/{STUDY.name}"
TABLES = expand(f"{RESULTS}/tables/{{table}}.{{kind}}", table=plan.TABLES, kind=["parquet", "csv"])
FIGURES = expand(
    f"{RESULTS}/figures/{{figure}}.{{kind}}", figure=plan.figures(STUDY), kind=["svg", "png"]
)

# A user's own `--resources local_server=2` wins.
for slot in plan.slots(STUDY):
    if slot not in workflow.global_resources:
        workflow.register_resource(slot, 1)

# A measurement takes the slot of its server's host.
SLOTS = {
    slot: lambda w, slot=slot: int(plan.slot(plan.cell(STUDY, w.cell)) == slot)
    for slot in plan.slots(STUDY)
}


wildcard_constraints:
    model="[A-Za-z0-9_-]+",
    scenario=r"[A-Za-z0-9_.-]+",
    tenant="[A-Za-z0-9_-]+",
    cell=r"[A-Za-z0-9_.-]+",
    server="[A-Za-z0-9_-]+",
    figure="[a-z_]+",
    precision="fp16|int8",


def scenarios_with(kind):
    """A pattern of the scenarios whose server loads model files of this kind."""
    names = "|".join(plan.server_names(STUDY, kind))
    return rf"(?:{names})\.[A-Za-z0-9_.-]+" if names else "(?!)"


def require_gpus(jobs):
    """Stop when some of the jobs that are to run here need GPUs that are not here."""
    cells = {job.wildcards.cell for job in jobs if job.rule.name == "measure"}
    try:
        for gpus in {plan.cell(STUDY, cell).scenario.server.gpus_here for cell in cells}:
            gpu.require(gpus)
    except gpu.GpuError as error:
        raise WorkflowError(str(error)) from None


def code(script):
    """scripts/<script>.py and the library modules that it imports, directly or not.

    As inputs of a rule they re-run its jobs when their content changes.
    """
    scripts = Path(workflow.basedir, "scripts")
    found, todo = set(), [scripts / f"{script}.py"]
    while todo:
        for node in ast.walk(ast.parse(todo.pop().read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("perseus"):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                paths = {scripts / f"{name.replace('.', '/')}.py" for name in names}
                new = {path for path in paths if path.is_file()} - found
                todo += new
                found |= new
    return [
        f"scripts/{path.relative_to(scripts)}"
        for path in [scripts / f"{script}.py", *sorted(found)]
    ]
