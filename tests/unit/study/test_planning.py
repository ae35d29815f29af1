"""Tests that the plan of a large study finds each job's files and task without a full search."""

import re
import time
from itertools import combinations, islice
from pathlib import Path

import pytest
import yaml

from perseus.peak.predicted.left_out import FEWEST
from perseus.study import files, planning
from perseus.study.cells import MIXES_TO_PREDICT
from perseus.study.raw_files import RAW
from perseus.study.read import read_study
from perseus.study.server import Server

PRICE = {"instance": "n1-standard-1", "region": "us-central1"}
ROOT = Path(__file__).parents[3]
NAMES = [f"resnet{n}" for n in (18, 34, 50, 101, 152)] + [f"vgg{n}" for n in (11, 13, 16, 19)]
NAMES += [f"densenet{n}" for n in (121, 161, 169)]


def large_study():
    mixes = [[1, n] for n in range(1, 16)]
    return read_study(
        {
            "study": "large",
            "models": [{"name": name, "sla": {"latency_ms": 100}} for name in NAMES],
            "servers": [
                {
                    "name": "cpu1",
                    "cores": 1,
                    "price": PRICE,
                }
            ],
            "scenarios": [
                {
                    "name": f"{one}-{other}",
                    "servers": ["cpu1"],
                    "tenants": [{"model": one}, {"model": other}],
                    "experiments": [{"kind": "peak", "mixes": mixes}],
                }
                for one, other in combinations(NAMES, 2)
            ],
            "measurement": {"repeats": 10},
        },
        prices=ROOT / "config" / "prices.csv",
        folder=ROOT,
    )


def test_ten_thousand_cells_are_planned_in_seconds():
    study = large_study()
    assert len(study.cells) == 12 * 10 + 66 * 15 * 10
    start_s = time.monotonic()
    for cell_id, cell in study.cells.items():
        assert cell.id == cell_id
        planning.measure_task(study, cell).plain()
        files.repository_inputs(study, cell.scenario)
        assert len(study.dedicated_cells(cell)) == (20 if len(cell.scenario.tenants) == 2 else 0)
    assert time.monotonic() - start_s < 20


def test_every_cell_has_a_folder_of_its_own_which_is_its_output():
    study = large_study()
    some = list(study.cells.values())[:50]
    folders = files.raw(study, some)
    assert len(set(folders)) == 50
    assert [f"{folder}/record.json" for folder in folders] == files.records(study, some)
    for folder in folders:
        for name in (*RAW, "some/where/deep"):
            assert files.output_with(study, f"{folder}/{name}") == folder
        assert files.output_with(study, folder) == folder
    for other in ("results/else/raw/a/record.json", f"{files.results(study)}/report.html"):
        assert files.output_with(study, other) == other


def test_every_cell_stands_in_one_list_of_what_was_measured():
    """Each kind of experiment has one list, with all cells of this kind.

    A frontier is also a search, so tables and figures of searches contain the frontier.
    """
    study = small_study()
    kinds = {cell.run.kind for cell in study.cells.values()}
    lists = files.measured(study)
    assert sorted(lists) == sorted(f"results/{study.name}/measured/{kind}.json" for kind in kinds)
    assert files.measured(study, "startup") == [f"results/{study.name}/measured/startup.json"]


def small_study(**measurement):
    kinds = [
        {"kind": "startup"},
        {"kind": "aa"},
        {"kind": "concurrency", "concurrencies": [1, 4]},
        {"kind": "replay", "process": "mmpp", "rates_rps": [5]},
        {"kind": "soak", "rates_rps": [5, 5]},
        {"kind": "slowdown", "rate_rps": 5},
        {"kind": "background", "search": NAMES[0], "rates_rps": [5]},
        {"kind": "frontier", "points": 2},
    ]
    return read_study(
        {
            "study": "small",
            "models": [{"name": name, "sla": {"latency_ms": 100}} for name in NAMES[:2]],
            "servers": [{"name": "cpu1", "cores": 1, "price": PRICE}],
            "scenarios": [
                {
                    "name": "shared",
                    "servers": ["cpu1"],
                    "tenants": [{"model": name} for name in NAMES[:2]],
                    "experiments": kinds,
                }
            ],
            "measurement": measurement,
        },
        prices=ROOT / "config" / "prices.csv",
        folder=ROOT,
    )


def measured_anew(one, other):
    """Return the kinds of experiments whose cells differ between two studies in their tasks or in
    their input files."""

    def asked(study, cell):
        return planning.measure_task(study, cell).plain(), files.cell_inputs(study, cell)

    cells = zip(one.cells.values(), other.cells.values(), strict=True)
    return {a.run.kind for a, b in cells if asked(one, a) != asked(other, b)}


def test_what_an_experiment_does_not_read_leaves_its_cells_alone(tmp_path):
    (tmp_path / "trace.txt").write_text("0\n1\n3\n")
    study, searched = small_study(), {"peak", "frontier", "background", "slowdown", "soak"}
    loaded = searched | {"aa", "concurrency", "replay"}
    traced = {"process": "trace", "trace": str(tmp_path / "trace.txt")}
    for arrivals in ({"process": "gamma"}, traced):
        assert measured_anew(study, small_study(arrivals=arrivals)) == searched, arrivals
    assert measured_anew(study, small_study(client={"processes": 2})) == loaded
    assert measured_anew(study, small_study(client={"protocol": "http"})) == loaded | {"startup"}
    assert measured_anew(study, small_study(preset="smoke")) == loaded | {"startup"}


STUDIES = sorted((ROOT / "config" / "studies").glob("*.yaml"))


def tasks_of(study):
    """Yield the tasks of the jobs of a study, with at most a hundred cells."""
    for model in study.models.values():
        if model.architecture:
            yield planning.export_task(study, model.name)
    yield from (planning.repository_task(study, id) for id in study.scenarios)
    yield from (planning.measure_task(study, cell) for cell in islice(study.cells.values(), 100))
    yield from (planning.ceiling_task(study, name) for name in study.ceilings)
    for task in ("predictions", "tables", "check", "figure", "report"):
        yield getattr(planning, f"{task}_task")(study)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_what_a_job_is_told_comes_back_from_its_plain_form(path):
    """A job reads its task in the plain form. The name of a grid variant is not valid in a
    configuration."""
    default = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    study = read_study(
        default | yaml.safe_load(path.read_text()),
        prices=ROOT / "config" / "prices.csv",
        folder=ROOT,
    )
    for task in tasks_of(study):
        assert type(task).model_validate(task.plain()).plain() == task.plain()


def test_quickstart_is_the_default_under_its_name():
    changed = yaml.safe_load((ROOT / "config" / "studies" / "quickstart.yaml").read_text())
    assert changed == {"study": "quickstart"}


def test_the_page_of_questions_lists_every_study():
    page = (ROOT / "docs/how-to/questions.md").read_text()
    named = [line.split("|")[1] for line in page.splitlines() if line.startswith("|")]
    listed = {name for cell in named for name in re.findall("`([a-z_]+)`", cell)}
    assert listed == {path.stem for path in STUDIES}


def test_mixes_are_predicted_where_a_server_has_enough_of_them():
    """One of the two scenarios is also on another server."""
    few = {"kind": "peak", "mixes": [[1, 1], [2, 1], [3, 1]]}
    found = {}
    for servers in (["cpu1", "cpu2"], ["cpu1"]):
        for points in (1, 2):
            more = {"kind": "frontier", "points": points}
            study = read_study(
                {
                    "study": "pairs",
                    "models": [{"name": name, "sla": {"latency_ms": 100}} for name in NAMES[:3]],
                    "servers": [{"name": f"cpu{n}", "cores": 1, "price": PRICE} for n in (1, 2)],
                    "scenarios": [
                        shared("first", NAMES[:2], few, servers[:1]),
                        shared("second", NAMES[1:3], more, servers[-1:]),
                    ],
                },
                prices=ROOT / "config" / "prices.csv",
                folder=ROOT,
            )
            found[len(servers), points] = "mixes" in study.kinds
    assert found == {(2, 1): False, (2, 2): False, (1, 1): False, (1, 2): True}
    assert MIXES_TO_PREDICT == FEWEST + 1


def shared(name, models, experiment, servers):
    """Return a scenario of the configuration."""
    tenants = [{"model": model} for model in models]
    return {"name": name, "servers": servers, "tenants": tenants, "experiments": [experiment]}


def test_what_a_prediction_rests_on_of_copies_are_inputs_of_its_cell():
    """The inputs of a predicted cell include the mixes of copies of each of its models. Only mixes
    with the same server and preset are inputs.

    A mix that Perseus may predict is never an input, so that no cell waits for itself.
    """
    predicted_record = {"kind": "frontier", "points": 2, "predict": True}
    even = {"kind": "peak", "mixes": [[1, 1]]}
    sure = copies("sure", NAMES[1], ["cpu1"], even) | {"preset": "standard"}
    study = read_study(
        {
            "study": "pairs",
            "models": [{"name": name, "sla": {"latency_ms": 100}} for name in NAMES[:3]],
            "servers": [{"name": f"cpu{n}", "cores": 1, "price": PRICE} for n in (1, 2)],
            "scenarios": [
                shared("pair", NAMES[:2], predicted_record, ["cpu1"]),
                shared("others", NAMES[1:3], {"kind": "frontier", "points": 1}, ["cpu1"]),
                copies("first_twice", NAMES[0], ["cpu1", "cpu2"], even, predicted_record),
                copies("third_twice", NAMES[2], ["cpu1"], even),
                sure,
            ],
            "measurement": {"repeats": 2},
        },
        prices=ROOT / "config" / "prices.csv",
        folder=ROOT,
    )

    def of_copies(cell):
        found = files.cell_inputs(study, study.cells[cell])
        return [found.get(name, []) for name in ("copies", "copies_dedicated", "checks")]

    raw, first = "results/pairs/raw/cpu1.first_twice.mix-1-1", NAMES[0]
    assert of_copies("cpu1.pair.frontier-2.r1") == [
        [f"{raw}.r1", f"{raw}.r2"],
        [f"results/pairs/repeats/cpu1.{first}_b.peak.json"],
        [f"results/pairs/models/{name}/check.json" for name in NAMES[:2]],
    ]
    assert of_copies("cpu1.others.frontier-1.r1") == [[], [], []]
    (own, alone, checked) = of_copies("cpu2.first_twice.frontier-1.r1")
    assert own == [f"{raw}.r{n}".replace("cpu1", "cpu2") for n in (1, 2)]
    assert not alone and checked == [f"results/pairs/models/{first}/check.json"]


def copies(name, model, servers, *experiments):
    """Return a scenario of a model and a copy of the model."""
    tenants = [{"model": model}, {"model": model, "name": f"{model}_b"}]
    return {
        "name": name,
        "servers": servers,
        "tenants": tenants,
        "experiments": list(experiments),
    }


def test_figures_of_peaks_read_the_searches_of_other_kinds_too():
    tenants = [{"model": name} for name in NAMES[:2]]
    beside = {"kind": "background", "search": NAMES[0], "percents_of_peak": [50]}
    pairs = {"kind": "slowdown"}
    study = read_study(
        {
            "study": "pair",
            "models": [{"name": name, "sla": {"latency_ms": 100}} for name in NAMES[:2]],
            "servers": [{"name": "cpu1", "cores": 1, "price": PRICE}],
            "scenarios": [
                {
                    "name": "shared",
                    "servers": ["cpu1"],
                    "tenants": tenants,
                    "experiments": [beside, pairs],
                }
            ],
        },
        prices=ROOT / "config" / "prices.csv",
        folder=ROOT,
    )
    of_peaks, of_background, of_pairs = (
        [Path(file).stem for file in files.measured(study, kind)]
        for kind in ("peak", "background", "slowdown")
    )
    assert of_peaks == ["peak", "background"]
    assert (of_background, of_pairs) == (["background"], ["slowdown"])
    assert study.kinds == {"peak", "background", "slowdown", "prices", "choice"}
    assert [len(study.dedicated_cells(cell)) for cell in study.cells.values()] == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("launcher", "image", "expected"),
    [
        ("apptainer", "images/triton.sif", ["images/triton.sif"]),
        ("apptainer", "docker://triton:1", []),
        ("docker", "triton:1", []),
    ],
)
def test_an_image_that_is_a_file_is_an_input(launcher, image, expected):
    server = {"name": "cpu1", "cores": 1, "launcher": launcher, "image": image, "price": PRICE}
    assert files.image(Server.model_validate(server)) == expected
