"""Only one cell at a time measures each remote server. During a measurement of a local server, no
other cell runs."""

from collections import Counter
from itertools import combinations

import pytest
from dag.test_exclusive_slots import SLEEP

from perseus.measurement.progress.overview import NAME, RunPlan

STUDY = """
study: remote
models:
  - {name: squeezenet1_1, sla: {percentile: 95, latency_ms: 100}}
  - {name: mobilenet_v3_small, sla: {percentile: 95, latency_ms: 100}}
servers:
  - &local
    name: local
    cores: 1
    price: {instance: n1-standard-1, region: us-central1}
  - {<<: *local, name: near, launcher: remote, remote: {host: 127.0.0.1}}
  - {<<: *local, name: far, launcher: remote, remote: {host: triton.example.org}}
  - {<<: *local, name: same, launcher: remote, remote: {host: triton.example.org, grpc: "a:1"}}
scenarios:
  - name: shared
    servers: [local, near, far, same]
    tenants: [{model: squeezenet1_1}, {model: mobilenet_v3_small}]
    experiments: [{kind: peak, mixes: [[1, 1]]}]
measurement: {precision: quick}
"""
HOSTS = {"local": "here", "near": "127.0.0.1", "far": "example", "same": "example"}


@pytest.fixture(scope="module")
def measured(empty, tmp_path_factory):
    """Return the workflow after the measurements of STUDY."""
    workflow = empty.copy(tmp_path_factory.mktemp("slots") / "workflow")
    (workflow.root / "config" / "config.yaml").write_text(STUDY)
    for step in ("export", "repository", "measure"):
        workflow.fake(step, SLEEP.replace("0.15", "0.5"))
    workflow.run("measurements", "--cores", "4")
    return workflow


@pytest.fixture(scope="module")
def spans(measured):
    """Return (host of the server, start, end) of each measurement."""
    return [
        (HOSTS[file.name.split("-")[1].split(".")[0]], *map(int, file.read_text().split()))
        for file in (measured.root / "spans").iterdir()
        if file.name.startswith("measure-")
    ]


def together(spans):
    """Return how often the measurements of each pair of hosts overlap in time."""
    return Counter(
        tuple(sorted((one, other)))
        for (one, start, end), (other, begin, finish) in combinations(spans, 2)
        if start < finish and begin < end
    )


def test_remote_servers_are_measured_side_by_side(spans):
    assert len(spans) == 12
    assert together(spans)["127.0.0.1", "example"] > 0


def test_a_host_is_measured_by_one_cell_at_a_time(spans):
    found = together(spans)
    assert not any(found[host, host] for host in HOSTS.values())


def test_nothing_is_measured_beside_a_server_of_this_host(spans):
    assert not any("here" in pair for pair in together(spans))


def test_the_plan_of_the_run_has_the_slot_of_each_cell(measured):
    plan = RunPlan.model_validate_json((measured.root / "logs/remote" / NAME).read_text())
    assert Counter(plan.slots.values()) == {
        "local_server": 3,
        "remote_localhost": 3,
        "remote_triton_example_org": 6,
    }
