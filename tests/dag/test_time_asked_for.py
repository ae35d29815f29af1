"""On a cluster, a measurement asks the scheduler for the longest time that its cell can need."""

import re

import pytest

STUDY = """
study: times
models:
  - {name: squeezenet1_1, sla: {latency_ms: 100}}
servers:
  - {name: cpu1, cores: 1, price: {instance: n1-standard-1, region: us-central1}}
scenarios:
  - name: squeezenet1_1
    servers: [cpu1]
    tenants: [{model: squeezenet1_1}]
    experiments: [{kind: soak, duration_s: 36000, rates_rps: [5]}]
measurement: {preset: quick}
"""
CELL = re.compile(
    r"^rule measure:$.*?raw/cpu1\.squeezenet1_1\.(\w+).*?resources: (.*?)$", re.M | re.S
)

ON_A_CLUSTER = ("--jobs", "2", "--cores", "2")


@pytest.fixture(scope="module")
def asked(empty, tmp_path_factory):
    """Return a function that returns the requested resources of each measurement in a dry run."""
    workflow = empty.copy(tmp_path_factory.mktemp("times") / "workflow")
    (workflow.root / "config" / "config.yaml").write_text(STUDY)
    # Snakemake prints the resources of a job only if the job has no message of its own.
    workflow.edit("rules/measure.smk", '    message:\n        "Measuring {wildcards.cell}"\n', "")

    def plan(*options):
        code, output, errors = workflow.plan("measurements", *options)
        assert code == 0, errors
        return dict(CELL.findall(output + errors))

    return plan


def test_a_long_soak_has_the_time_of_both_attempts_and_a_search_four_hours(asked):
    found = asked(*ON_A_CLUSTER)
    minutes = {
        name: int(re.search(r"\bruntime=(\d+)", message)[1]) for name, message in found.items()
    }
    assert minutes["peak"] == 240
    assert minutes["soak"] == pytest.approx(2 * 600 + 30, abs=5)


def test_on_this_machine_nothing_asks_for_time(asked):
    found = asked("--cores", "2")
    assert sorted(found) == ["peak", "soak"]
    assert not any("runtime=" in message for message in found.values())
