"""Read the study once from the configuration, and define the common values of all rules."""

import gc
import os
import re
import sys
from functools import cache
from pathlib import Path

from snakemake.common.configfile import load_configfile
from snakemake.exceptions import WorkflowError
from snakemake.script import PythonScript

# Code, defaults and prices are in the folder of this workflow, even if another workflow uses this
# workflow as a module. The paths of results, and of files that the study names, are relative to
# the working directory.
HERE = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parent
sys.path.insert(0, str(HERE / "scripts"))

# Jobs and their child processes read and write text as UTF-8, independent of the locale.
os.environ.update(PYTHONUTF8="1")

# With line buffering, a log has the lines of the workflow and of its jobs in the order of time. A
# message may contain characters that the encoding of the terminal lacks: Python then replaces these
# characters instead of raising an error.
sys.stdout.reconfigure(line_buffering=True, errors="replace")

# Snakemake and torch need the name of the user. In a container, a user id may have no name, so the
# number of the user id serves as its name.
os.environ.setdefault("USER", str(os.getuid()))

from perseus.host import cores, orphans, snakemake_cache
from perseus.models.external_data import external_files
from perseus.report.figures import FIGURES, figures_of
from perseus.results.tables import PREDICTIONS, TABLES, TABLES_OF_RESULTS
from perseus.study import config_files, files, planning, provenance, slots
from perseus.study.experiments import KINDS
from perseus.study.file_contents import contents
from perseus.study.fingerprint import Sources
from perseus.study.hints import did_you_mean
from perseus.study.measure_tasks import MeasureTasks
from perseus.study.problems import ConfigError
from perseus.study.read import read_study

# Snakemake selects jobs with a solver that fails if the path of its temporary files has a space.
# The solver reads TMP before TMPDIR, so set TMP to a path without a space.
os.environ.update(TMP=str(orphans.place()))


def execute_quoted(script, cmd, execute=PythonScript._execute_cmd, **values):
    """Execute the script of a job. Snakemake 9.27.1 does not quote the path of Python, which has a
    space if the checkout has one."""
    execute(script, cmd.replace("{py_exec}", "{py_exec:q}"), **values)


PythonScript._execute_cmd = execute_quoted

# For each job, Snakemake calls some functions again with the same arguments. A cache for these
# functions saves 1/5 of the time to plan a large study.
snakemake_cache.cache_functions(sys.modules)

# All planned jobs stay in memory, so frequent garbage collection frees nothing. It would take 1/8
# of the time to plan a large study.
gc.set_threshold(100_000)

# These keys belong to the target `compare` and not to the study, so no job of the study depends on
# them.
ASKED = {key: value for key, value in config.items() if key in ("base", "new", "out")}

DEFAULTS = HERE / "config" / "config.yaml"
GIVEN = {
    key: config_files.typed(config[key], workflow.config_settings.config.get(key))
    for key in config
    if key not in ASKED
}
CONFIGURATION = config_files.merged(load_configfile(str(DEFAULTS)), GIVEN)

# If false (on a cluster, and in the process of a job), a server of the study may have more cores
# than this machine.
IS_ON_THIS_MACHINE = workflow.is_main_process and workflow.resource_settings.nodes is None

try:
    for path in [DEFAULTS, *workflow.overwrite_configfiles]:
        if doubled := list(config_files.doubled_keys(Path(path))):
            raise ConfigError(doubled)
    STUDY = read_study(
        CONFIGURATION,
        prices=HERE / "config" / "prices.csv",
        folder=Path.cwd(),
        most_cores=cores.max_server_cores() if IS_ON_THIS_MACHINE else None,
    )
except ConfigError as error:
    of_profile = config_files.keys_of_profile(workflow.config_settings.config, sys.argv)
    problems = [config_files.naming_profile(problem, of_profile) for problem in error.problems]
    raise WorkflowError(str(ConfigError(problems))) from None

SOURCES = Sources(HERE / "scripts")
MEASURE_TASKS = MeasureTasks(STUDY, SOURCES)
RESULTS, REPOSITORY, LOGS = files.results(STUDY), files.model_repository(STUDY), files.logs(STUDY)

CELLS = list(STUDY.cells.values())
TABLE_FILES = expand(f"{RESULTS}/tables/{{table}}.{{kind}}", table=TABLES, kind=["parquet", "csv"])
FIGURE_FILES = expand(
    f"{RESULTS}/figures/{{figure}}.{{kind}}",
    figure=figures_of(STUDY.kinds),
    kind=["svg", "png", "csv"],
)

TRACK_TASK = planning.track_task(STUDY)
TRACKED = [f"{RESULTS}/tracked.json"] if TRACK_TASK else []

# An export is the same on every machine, so it may come from the cache of Snakemake (--cache).
IS_CACHED = workflow.enable_cache

# Allow one measurement at a time, unless an option such as `--resources local_server=2` allows
# more.
for slot in slots.slots(STUDY):
    if slot not in workflow.global_resources:
        workflow.register_resource(slot, 1)


def of_cells(value):
    """Return the value of a keyword in a rule, such as `threads`, for the jobs of cells: a function
    of the wildcards, or a constant if all cells have the same value. A constant saves the time of a
    function call for each job."""
    values = set(map(value, CELLS))
    return values.pop() if len(values) == 1 else lambda w: value(STUDY.cells[w.cell])


# A measurement uses the Snakemake resource of the host on which its server runs, so that by default
# only one measurement runs on a host at a time.
SLOTS = {
    slot: of_cells(lambda cell, slot=slot: int(slots.slot(cell) == slot))
    for slot in slots.slots(STUDY)
}


def urgency(model):
    """Return the Snakemake priority of the jobs of a model. Snakemake runs jobs with a higher
    priority first."""
    return STUDY.urgency(model)


def of_models(value):
    """Return the value of a keyword in a rule, such as `priority`, for the jobs of models: a
    function of the wildcards, or a constant if all models have the same value."""
    values = set(map(value, STUDY.models))
    return values.pop() if len(values) == 1 else lambda w: value(w.model)


def most_minutes(cell):
    from perseus.measurement import measure  # a slow import

    return measure.most_minutes(MEASURE_TASKS.task(cell))


# The scheduler of a cluster ends a job after its requested time. Without a scheduler, there is no
# limit.
TIME = {}
if workflow.is_main_process and not IS_ON_THIS_MACHINE:
    TIME = {"runtime": lambda w: most_minutes(w.cell)}


wildcard_constraints:
    model="[A-Za-z0-9_-]+",
    scenario=r"[A-Za-z0-9_.~-]+",
    tenant="[A-Za-z0-9_~-]+",
    cell=r"[A-Za-z0-9_.~-]+",
    repeated=r"[A-Za-z0-9_.~-]+",
    server="[A-Za-z0-9_~-]+",
    figure="|".join(FIGURES),
    kind="|".join(KINDS),
    precision="|".join(files.CONVERTED),


@cache
def repository_task(scenario):
    return planning.repository_task(STUDY, scenario)


@cache
def ceiling_task(server):
    return planning.ceiling_task(STUDY, server)


def cell_of(name):
    """Return the cell with this id. If the study has no such cell, for example because the user
    misspelt the id in a target, raise WorkflowError with the most similar id."""
    if name not in STUDY.cells:
        hint = did_you_mean(name, list(STUDY.cells))
        raise WorkflowError(f"Study {STUDY.name!r} has no cell {name!r}{hint}")
    return STUDY.cells[name]


@cache
def onnx_files(model):
    """Return the user's ONNX file of a model, and the files with its external data."""
    file = STUDY.models[model].onnx
    return [file, *external_files(Path(file))]


def model_of(scenario, tenant):
    return STUDY.scenarios[scenario].tenant(tenant).model


def measured_of_figure(figure):
    """Return the lists of measured cells on which the figure depends; empty if the figure reads
    only tables, not raw results."""
    facts = FIGURES[figure]
    return files.measured(STUDY, facts.kind) if facts.reads_raw else []


def any_of(names):
    """Return a regular expression that matches exactly these names; it matches nothing if there are
    no names."""
    each = sorted(set(map(re.escape, names)))
    return rf"(?:{'|'.join(each)})" if each else "(?!)"


def plan_files():
    if STUDY.definition.demand is None:
        raise WorkflowError(
            f"Study {STUDY.name!r} has no demand to plan for: add `demand:` to its configuration"
            " (config/README.md)"
        )
    made = [path for path in [*TABLE_FILES, *FIGURE_FILES] if Path(path).stem.startswith("fleet")]
    return [files.checked_tables(STUDY), *made]
