"""Tests of a model that a remote server already has: valid settings and refused settings."""

import pytest
from unit.study.test_read import MALFORMED, cells, load, model, problems, scenario
from unit.study.test_remote_config import remote

from perseus.study import files, planning
from perseus.study.problems import ConfigError
from perseus.study.tasks.measure import MeasureTask, ServedModel


def served(name="mine", **more):
    return model(name, served_model="text_encoder") | more


def study_of(*models, **more):
    """Return a study with each model alone on the remote server."""
    names = [each["name"] for each in models]
    return {
        "models": list(models),
        "servers": [remote()],
        "scenarios": [scenario(name, name=name, servers=["far"]) for name in names],
    } | more


BOTH = study_of(
    served(),
    served("other", served_model="ranker"),
    scenarios=[scenario("mine", "other", name="both", servers=["far"])],
)


def test_it_is_measured_alone_and_shared_as_any_other():
    assert [cell.id for cell in cells(load(BOTH))] == [
        "far.mine.peak.r1",
        "far.other.peak.r1",
        "far.both.mix-1-1.r1",
    ]


def test_its_cells_need_no_export_no_repository_and_no_ceiling():
    study = load(BOTH)
    for cell in cells(study):
        assert "repository" not in files.cell_inputs(study, cell)
        assert not any(files.repository_inputs(study, cell.scenario).values())
    assert files.ceilings(study) == []


def test_what_only_the_server_knows_is_not_in_the_task():
    study = load(study_of(served(shape={"tokens": [128]})))
    (cell,) = cells(study)
    task = planning.measure_task(study, cell)
    (tenant,) = task.tenants
    assert tenant.served_model == ServedModel(name="text_encoder", shape={"tokens": (128,)})
    assert (tenant.max_batch_size, tenant.dynamic_batching, tenant.precision) == (None, None, None)
    assert task.deployed == []
    assert MeasureTask.model_validate(task.plain()) == task


CHANGES = [
    {"served_model": "v2"},
    {"shape": {"tokens": [64]}},
    {"values": {"low": 0, "high": 9}},
    {"deterministic": False},
]


@pytest.mark.parametrize("change", CHANGES)
def test_its_name_there_and_what_it_is_asked_are_in_the_tasks_of_its_cells(change):
    before, after = (load(study_of(served(), served("b") | more)) for more in ({}, change))
    changed = [
        cell.id
        for cell, other in zip(cells(before), cells(after), strict=True)
        if planning.measure_task(before, cell) != planning.measure_task(after, other)
    ]
    assert changed == ["far.b.peak.r1"]


def test_a_file_of_its_examples_is_an_input_of_its_cells(tmp_path):
    (tmp_path / "samples.npz").touch()
    study = load(study_of(served(inputs=str(tmp_path / "samples.npz"))))
    (cell,) = cells(study)
    assert files.cell_inputs(study, cell)["samples"] == [str(tmp_path / "samples.npz")]


def test_beside_models_that_are_brought_only_these_have_files():
    mixed = study_of(
        served(), model(), scenarios=[scenario("mine", "squeezenet1_1", servers=["far"])]
    )
    study = load(mixed | {"servers": [remote(other_models="allow")]})
    (shared,) = (cell for cell in cells(study) if cell.scenario.name == "shared")
    assert files.cell_inputs(study, shared)["repository"] == ["model_repository/base/far.shared"]
    (served_here,) = planning.repository_task(study, shared.scenario.id).tenants
    assert served_here.name == "squeezenet1_1"
    assert planning.measure_task(study, shared).deployed == ["squeezenet1_1"]
    assert files.references(study, shared.scenario) == [
        "results/base/models/squeezenet1_1/reference.npz"
    ]
    assert [each.model for each in planning.ceiling_task(study, "far").requests] == [
        "squeezenet1_1"
    ]
    assert files.ceilings(study) == ["results/base/ceilings/far.json"]
    assert problems(mixed) == (
        "servers[0].remote.other_models: must be `allow`, since Perseus loads 'squeezenet1_1'"
        " beside 'mine', which the server already has (or use another server for one of the"
        " two models)",
    )


def tenant(**more):
    """Return a study with one scenario of a served model. `more` has further keys of the tenant."""
    item = scenario({"model": "mine"} | more, name="mine", servers=["far"])
    return study_of(served(), scenarios=[item])


def asking(**experiment):
    item = scenario("mine", name="mine", servers=["far"], experiments=[experiment])
    return study_of(served(), scenarios=[item])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            study_of(served(weights="DEFAULT")),
            "models[0].weights: does not apply to a model with `served_model:`",
        ),
        (
            study_of(served(onnx="own.onnx")),
            "models[0].onnx: does not apply to a model with `served_model:`",
        ),
        (
            study_of(served(precision="fp16")),
            "models[0].precision: does not apply to a model with `served_model:`",
        ),
        (study_of(served(images="photos")), "models[0].images: there is no folder 'photos'"),
        (
            study_of(served(input_size=64)),
            "models[0].input_size: does not apply to a model with `served_model:`",
        ),
        (study_of(model(shape={"a": [1]})), "models[0].shape: applies only to models with `onnx:`"),
        (
            study_of(model(values={"low": 0, "high": 1})),
            "models[0].values: applies only to models with `onnx:` or `served",
        ),
        (
            study_of(served(values={"low": 1, "high": 0})),
            "values.low: must be <= `high`, which is 0",
        ),
        (study_of(served(inputs="none.npz")), "models[0].inputs: there is no numpy.savez file"),
        (
            study_of(served(scale=0.5)),
            "models[0].scale: applies only to the `images:` of a model with `onnx:` or",
        ),
        (study_of(served(served_model="a/b")), "'a/b' is not the name of a model (use letters,"),
        (study_of(served(shape={"a": [0]})), "models[0].shape.a[0]: must be >= 1, not 0"),
        (study_of(served(shape={"a": 3})), "models[0].shape.a: must be a list, not 3"),
        (study_of(served(shape={"a": []})), "models[0].shape.a: must have at least 1 item"),
        (study_of(served(shape=[3])), "models[0].shape: must be a mapping (key: value), not [3]"),
        (
            {"models": [served()], "scenarios": [scenario("mine", name="mine")]},
            "scenarios[0].tenants[0].model: 'mine' has `served_model:`, but server 'cpu1' starts"
            " with launcher 'embedded' (use a server with `launcher: remote`,",
        ),
        (
            tenant(instances=2),
            "tenants[0].instances: does not apply to 'text_encoder', a model that",
        ),
        (tenant(precision="fp32"), "tenants[0].precision: does not apply to 'text_encoder'"),
        (
            study_of(
                served(),
                scenarios=[
                    scenario("mine", name="mine", servers=["far"])
                    | {"grid": {"vary": {"instances": [1, 2]}}}
                ],
            ),
            "scenarios[0].grid: cannot vary the settings of 'text_encoder', a model that the"
            " server already has (remove `grid:`)",
        ),
        (
            tenant(max_batch_size=8),
            "tenants[0].max_batch_size: does not apply to 'text_encoder'",
        ),
        (
            tenant(dynamic_batching={}),
            "tenants[0].dynamic_batching: does not apply to 'text_encoder'",
        ),
        (
            tenant(priority=1),
            "tenants[0].priority: does not apply to 'text_encoder', a model that",
        ),
        (
            tenant(intra_op_threads=1),
            "tenants[0].intra_op_threads: does not apply to 'text_encoder'",
        ),
        *(
            (
                tenant(preprocessing=side),
                "tenants[0].preprocessing: 'mine' is a served_model, but Perseus knows",
            )
            for side in ("client", "server")
        ),
        (asking(kind="startup"), "experiments[0]: 'startup' restarts the server, but Perseus"),
        (asking(kind="aa"), "scenarios[0].experiments[0]: 'aa' restarts the server, but Perseus"),
        (
            study_of(
                served(),
                served("twin"),
                scenarios=[scenario("mine", "twin", servers=["far"])],
            ),
            "scenarios[0].tenants[1].model: 'text_encoder' is also the model of"
            " scenarios[0].tenants[0], but the statistics of the server do not distinguish two",
        ),
    ],
)
def test_where_it_cannot_be_is_said_before_any_job(change, expected):
    found = problems(change)
    assert len(found) == 1 and expected in found[0], "\n".join(found)


@pytest.mark.parametrize("bad", MALFORMED, ids=repr)
def test_whatever_stands_for_a_shape_there_is_a_list_of_problems_or_a_study(bad):
    for shape in (bad, {"a": bad}, {"a": [bad]}, {"a": [1], "b": [1, bad]}):
        try:
            load(study_of(served(shape=shape)))
        except ConfigError as error:
            assert error.problems and all("shape" in line for line in error.problems)


def test_its_requests_may_be_larger_than_the_batches_of_models_that_are_brought():
    load(tenant(request_batch_size=64))


def test_one_served_model_may_have_several_names_and_slas_in_scenarios_of_their_own():
    load(study_of(served(), served("strict", sla={"latency_ms": 5})))
