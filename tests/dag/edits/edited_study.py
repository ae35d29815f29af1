"""The jobs of the study that is edited, and how it is edited."""

import yaml

RESNET, MOBILENET = "resnet18", "mobilenet_v3_large"
RESNET_PEAK = ("measure", "cpu1.resnet18.peak.r1")
MOBILENET_PEAK = ("measure", "cpu1.mobilenet_v3_large.peak.r1")
MIX = ("measure", "cpu1.shared.mix-3-1.r1")
ALL_CELLS = {RESNET_PEAK, MOBILENET_PEAK, MIX}
ALONE = [{"name": m, "servers": ["cpu1"], "tenants": [{"model": m}]} for m in (RESNET, MOBILENET)]
CODE = "EDITED = True\n"  # appended to a module, an edit that could change what it does
CEILING = ("ceiling", "cpu1")
RAW_RESULTS = "scripts/perseus/measurement/raw_results.py"


def repositories(*models):
    """Of these models alone, and of both together."""
    return {("repository", f"cpu1.{scenario}") for scenario in (*models, "shared")}


def of_variant(more):
    """What measures the scenario with one setting, of the tenants' own."""
    shared = f"cpu1.shared{more}"
    scenarios = (*(f"cpu1.{model}{more}" for model in (RESNET, MOBILENET)), shared)
    repository = {("repository", scenario) for scenario in scenarios}
    alone = {("measure", f"cpu1.{model}{more}.peak.r1") for model in (RESNET, MOBILENET)}
    return repository | alone | {("measure", f"{shared}.mix-3-1.r1")}


def reconfigured(workflow, change):
    """`change` gets the configuration as plain values and edits it."""
    path = workflow.root / "config" / "config.yaml"
    study = yaml.safe_load(path.read_text())
    change(study)
    path.write_text(yaml.safe_dump(study, sort_keys=False))
