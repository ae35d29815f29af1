"""The jobs of the study that the tests edit, and functions that edit the study."""

import yaml

RESNET, MOBILENET = "resnet18", "mobilenet_v3_large"
RESNET_PEAK = ("measure", "cpu1.resnet18.peak.r1")
MOBILENET_PEAK = ("measure", "cpu1.mobilenet_v3_large.peak.r1")
MIX = ("measure", "cpu1.shared.mix-3-1.r1")
ALL_CELLS = {RESNET_PEAK, MOBILENET_PEAK, MIX}
ALONE = [{"name": m, "servers": ["cpu1"], "tenants": [{"model": m}]} for m in (RESNET, MOBILENET)]
# The tests append this line to a module: an edit that could change what the module does.
CODE = "EDITED = True\n"
CEILING = ("ceiling", "cpu1")
RAW_RESULTS = "scripts/perseus/measurement/raw_results.py"


def repositories(*models):
    """Return the jobs that make the repositories of these models and of the shared scenario."""
    return {("repository", f"cpu1.{scenario}") for scenario in (*models, "shared")}


def of_variant(more):
    """Return the jobs that measure the scenario and its dedicated peaks with one more setting."""
    shared = f"cpu1.shared{more}"
    scenarios = (*(f"cpu1.{model}{more}" for model in (RESNET, MOBILENET)), shared)
    repository = {("repository", scenario) for scenario in scenarios}
    alone = {("measure", f"cpu1.{model}{more}.peak.r1") for model in (RESNET, MOBILENET)}
    return repository | alone | {("measure", f"{shared}.mix-3-1.r1")}


def reconfigured(workflow, change):
    """Let `change` edit the configuration as plain Python values."""
    path = workflow.root / "config" / "config.yaml"
    study = yaml.safe_load(path.read_text())
    change(study)
    path.write_text(yaml.safe_dump(study, sort_keys=False))
