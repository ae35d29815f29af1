"""The jobs that run again after an edit of a grid."""

import pytest
from dag.edits.edited_study import of_variant, reconfigured


def varied(edited, **vary):
    grid = {"vary": vary}
    reconfigured(edited, lambda study: study["scenarios"][0].update(grid=grid))


def test_a_grid_added_a_value_more_and_one_less(edited, downstream):
    """Cells that the scenario or another grid has measured are not measured again."""
    drawn = {("figure", "grid"), *downstream}
    varied(edited, instances=[1, 2])
    assert edited.stale() == of_variant("~instances-2") | drawn
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    varied(edited, instances=[4, 2, 1])
    assert edited.stale() == of_variant("~instances-4") | drawn
    varied(edited, instances=[2])
    assert edited.stale() == drawn
    reconfigured(edited, lambda study: study["scenarios"][0].pop("grid"))
    assert edited.stale() == downstream


def test_another_key_of_a_grid(edited, downstream):
    varied(edited, instances=[1, 2])
    edited.run("--cores", "2", "all")
    varied(edited, instances=[1, 2], max_batch_size=[8, 16])
    new = of_variant("~batch-16") | of_variant("~instances-2~batch-16")
    assert edited.stale() == new | {("figure", "grid"), *downstream}


@pytest.mark.parametrize("design", ["full", "one_at_a_time"])
def test_a_screening_that_has_half_of_its_cells(edited, downstream, design):
    varied(edited, instances=[1, 2], max_batch_size=[8, 16])
    reconfigured(edited, lambda study: study["scenarios"][0]["grid"].update(design=design))
    edited.run("--cores", "2", "results/edits/raw/cpu1.shared~instances-2.mix-3-1.r1")
    both = of_variant("~instances-2~batch-16") if design == "full" else set()
    assert edited.stale() == of_variant("~batch-16") | both | {("figure", "grid"), *downstream}


def test_a_runtime_of_a_grid_needs_no_other_ceiling_of_the_client(edited, downstream):
    varied(edited, runtime=["onnxruntime", "openvino"])
    new = {(job[0], *(part.replace("cpu1.", "cpu1~runtime-openvino.") for part in job[1:]))
           for job in of_variant("")}  # fmt: skip
    assert edited.stale() == new | {("figure", "grid"), *downstream}


def test_cores_of_a_grid_have_a_ceiling_of_their_own_where_this_machine_has_them(
    edited, downstream, priced_jobs
):
    varied(edited, cores=[1, 100_000])
    assert edited.stale() == {("figure", "grid"), *priced_jobs}
    new = {(job[0], *(part.replace("cpu1.", "cpu1~cores-2.") for part in job[1:]))
           for job in of_variant("")} | {("ceiling", "cpu1~cores-2")}  # fmt: skip
    varied(edited, cores=[1, 2])
    elsewhere = ("--jobs", "2", "--cores", "2")  # options like those of a profile of a cluster
    assert edited.stale(*elsewhere) == new | {("figure", "grid"), *downstream}


def test_the_bounds_of_a_grid(edited, priced_jobs):
    varied(edited, instances=[1, 2])
    edited.run("--cores", "2", "all")
    bounds = {"p95_ms": 40, "relative_error": 0.1}
    reconfigured(edited, lambda s: s["scenarios"][0]["grid"].update(at_most=bounds))
    assert edited.stale() == {("figure", "grid"), *priced_jobs}
