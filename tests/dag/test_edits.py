"""What an edit runs again, and that it runs nothing else. All results of a study are there."""

import pytest
import yaml

RESNET, MOBILENET = "resnet18", "mobilenet_v3_large"
RESNET_PEAK = ("measure", "cpu1.resnet18.peak.r1")
MOBILENET_PEAK = ("measure", "cpu1.mobilenet_v3_large.peak.r1")
MIX = ("measure", "cpu1.shared.mix-3-1.r1")
ALL_CELLS = {RESNET_PEAK, MOBILENET_PEAK, MIX}
CEILING = ("ceiling", "cpu1")


def repositories(*models):
    return {(rule, scenario, model) for rule in ["repository"] for model in models
            for scenario in (f"cpu1.{model}", "cpu1.shared")}  # fmt: skip


@pytest.fixture
def figures(finished):
    return {job for job in finished.jobs() if job[0] == "figure"} | {("report",)}


@pytest.fixture
def downstream(figures):
    """Everything after the measurements."""
    return {("tables",), *figures}


def reconfigured(workflow, change):
    """`change` gets the configuration as plain values and edits it."""
    path = workflow.root / "config" / "config.yaml"
    study = yaml.safe_load(path.read_text())
    change(study)
    path.write_text(yaml.safe_dump(study, sort_keys=False))


# Edits that run nothing


def test_nothing_edited(edited):
    assert edited.stale() == set()


def test_every_file_touched(edited):
    for path in edited.root.rglob("*"):
        inside = path.relative_to(edited.root).parts[0]
        if path.is_file() and inside in {
            "Snakefile",
            "rules",
            "scripts",
            "config",
            "weights",
            "photos",
            "envs",
        }:
            path.touch()
    assert edited.stale() == set()


def test_order_of_keys_and_spelling_of_numbers(edited):
    def turn(study):
        study["models"][0]["sla"] = {"latency_ms": 100.0, "percentile": 95.0}
        study["models"][1]["weights"] = "random"  # the default
        study["scenarios"][0] = dict(reversed(study["scenarios"][0].items()))
        study["measurement"] = study.pop("measurement")
        for key in ("study", "seed", "models"):
            study[key] = study.pop(key)

    reconfigured(edited, turn)
    assert edited.stale() == set()


def test_edit_and_revert(edited):
    places = [
        "config/config.yaml",
        "config/prices.csv",
        "scripts/perseus/traffic/client.py",
        "scripts/measure.py",
    ]
    texts = {place: (edited.root / place).read_text() for place in places}
    for place, text in texts.items():
        (edited.root / place).write_text(text + "\n# edited\n")
    assert edited.stale() != set()
    for place, text in texts.items():
        (edited.root / place).write_text(text)
    assert edited.stale() == set()


def test_a_price_of_another_machine(edited):
    edited.edit("config/prices.csv", ",0.526,0.215800,", ",0.527,0.215800,")  # g4dn.xlarge
    assert edited.stale() == set()


def test_another_study_leaves_this_one_alone(edited):
    other = ["--configfile", "config/studies/smoke.yaml"]
    assert all(edited.jobs(*other).values())
    assert edited.stale() == set()


# Edits of the configuration


def test_the_price_of_a_server(edited, downstream):
    edited.edit("config/prices.csv", "us-central1-a,0.0475,", "us-central1-a,0.0999,")
    assert edited.stale() == downstream


def test_the_style_of_the_figures(edited, figures):
    reconfigured(edited, lambda study: study["figures"].update(width_mm=120))
    assert edited.stale() == figures


def test_the_first_pricing_is_that_of_the_figures(edited, downstream):
    reconfigured(edited, lambda study: study.update(costs={"pricing": ["spot"]}))
    assert edited.stale() == downstream


def test_the_sla_of_a_model(edited, downstream):
    reconfigured(edited, lambda study: study["models"][0]["sla"].update(latency_ms=120))
    assert edited.stale() == {RESNET_PEAK, MIX, *downstream}


def test_a_mix_added(edited, downstream):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][0]["mixes"].append([1, 1]))
    assert edited.stale() == {("measure", "cpu1.shared.mix-1-1.r1"), *downstream}


def test_closed_loops_added(edited, downstream):
    """They have a figure of their own, and need no dedicated peak."""
    loops = {"kind": "concurrency", "concurrencies": [1, 4]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(loops))
    cell = ("measure", "cpu1.shared.concurrency.r1")
    assert edited.stale() == {cell, ("figure", "concurrency"), *downstream}


def test_a_mix_replaced(edited, downstream):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][0].update(mixes=[[1, 2]]))
    assert edited.stale() == {("measure", "cpu1.shared.mix-1-2.r1"), *downstream}


def test_a_model_added_with_a_scenario(edited, downstream):
    def add(study):
        study["models"].append({"name": "squeezenet1_1", "sla": {"latency_ms": 30}})
        study["scenarios"].append(
            {
                "name": "pair",
                "servers": ["cpu1"],
                "tenants": [{"model": RESNET}, {"model": "squeezenet1_1"}],
                "experiments": [{"kind": "peak", "mixes": [[1, 1]]}],
            }
        )

    reconfigured(edited, add)
    assert edited.stale() == {
        ("export", "squeezenet1_1"),
        ("repository", "cpu1.squeezenet1_1", "squeezenet1_1"),
        ("repository", "cpu1.pair", "squeezenet1_1"),
        ("repository", "cpu1.pair", RESNET),
        ("measure", "cpu1.squeezenet1_1.peak.r1"),
        ("measure", "cpu1.pair.mix-1-1.r1"),
        CEILING,
        *downstream,
    }


def test_a_scenario_removed(edited, downstream):
    """What is left was measured; what combines it changes."""
    alone = [
        {"name": m, "servers": ["cpu1"], "tenants": [{"model": m}]} for m in (RESNET, MOBILENET)
    ]
    reconfigured(edited, lambda study: study.update(scenarios=alone))
    assert edited.stale() == downstream


def test_a_repeat_added(edited, downstream):
    """The rates of a mix are shares of the mean dedicated peaks, so the mix is measured again."""
    reconfigured(edited, lambda study: study["measurement"].update(repeats=2))
    second = {(rule, cell.replace(".r1", ".r2")) for rule, cell in ALL_CELLS}
    assert edited.stale() == {*second, MIX, *downstream}


def test_the_instances_of_a_tenant(edited, downstream):
    reconfigured(edited, lambda study: study["scenarios"][0]["tenants"][0].update(instances=2))
    assert edited.stale() == repositories(RESNET) | {RESNET_PEAK, MIX, *downstream}


def test_the_precision_of_the_study(edited, downstream):
    reconfigured(
        edited, lambda study: study.update(measurement={"precision": "standard", "repeats": 1})
    )
    assert edited.stale() == ALL_CELLS | downstream


def test_the_launcher_and_the_image_of_a_server(edited, downstream):
    reconfigured(
        edited, lambda study: study["servers"][0].update(launcher="docker", image="triton:1")
    )
    assert edited.stale() == ALL_CELLS | downstream
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    reconfigured(edited, lambda study: study["servers"][0].update(image="triton:2"))
    assert edited.stale() == ALL_CELLS | downstream


def test_the_input_size_of_a_model(edited, downstream):
    reconfigured(edited, lambda study: study["models"][1].update(input_size=128))
    exported = {("export", MOBILENET), *repositories(MOBILENET), CEILING}
    assert edited.stale() == exported | {MOBILENET_PEAK, MIX, *downstream}


def test_new_weights_in_the_same_file(edited, downstream):
    (edited.root / "weights" / "resnet18.pt").write_bytes(b"better weights")
    exported = {("export", RESNET), *repositories(RESNET), CEILING}
    assert edited.stale() == exported | {RESNET_PEAK, MIX, *downstream}


@pytest.mark.parametrize("name", ["8.jpg", "0.png"], ids=["edited", "new"])
def test_an_image_of_a_model(edited, downstream, name):
    (edited.root / "photos" / name).write_bytes(b"another photo")
    exported = {("export", MOBILENET), *repositories(MOBILENET), CEILING}
    assert edited.stale() == exported | {MOBILENET_PEAK, MIX, *downstream}


@pytest.mark.parametrize("name", ["9.jpg", "0.txt", ".0.jpg"])
def test_a_file_beside_the_images_that_are_used(edited, name):
    (edited.root / "photos" / name).write_bytes(b"not used")
    assert edited.stale() == set()


def test_the_trace_of_the_arrivals(edited, downstream):
    (edited.root / "trace.csv").write_text("time_s\n0\n1\n3\n")
    arrivals = {"process": "trace", "trace": "trace.csv"}
    reconfigured(edited, lambda study: study["measurement"].update(arrivals=arrivals))
    assert edited.stale() == ALL_CELLS | downstream
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    edited.append("trace.csv", "4\n")
    assert edited.stale() == ALL_CELLS | downstream


# Edits of the code


@pytest.mark.parametrize("module", ["peak/search.py", "../backends/onnxruntime/model.py"])
def test_code_of_the_measurement(edited, downstream, module):
    edited.append(f"scripts/perseus/{module}", "\n# another method\n")
    assert edited.stale() == ALL_CELLS | downstream


def test_code_of_the_client(edited, downstream):
    edited.append("scripts/perseus/traffic/client.py", "\n# another method\n")
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


def test_code_of_the_null_model(edited, downstream):
    edited.append("scripts/backends/null/model.py", "\n# another zero\n")
    assert edited.stale() == {CEILING} | downstream


def test_the_way_of_the_requests(edited, downstream):
    client = {"shared_memory": True}
    reconfigured(edited, lambda study: study["measurement"].update(client=client))
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


def test_a_backend_that_no_server_of_the_study_uses(edited):
    edited.append("scripts/backends/openvino/model.py", "\n# edited\n")
    assert edited.stale() == set()


def test_code_of_the_export(edited):
    edited.append("scripts/perseus/models/onnx_export.py", "\n# another export\n")
    assert edited.stale() == set(edited.jobs())


def test_code_of_the_tables(edited, downstream):
    edited.append("scripts/perseus/results/cost.py", "\n# another formula\n")
    assert edited.stale() == downstream


def test_code_of_the_figures(edited, figures):
    edited.append("scripts/perseus/report/figures.py", "\n# another look\n")
    assert edited.stale() == figures


def test_an_entry_script(edited, downstream):
    edited.append("scripts/tables.py", "\n# edited\n")
    assert edited.stale() == downstream


# Results that were lost


def test_a_lost_figure_is_drawn_again(edited):
    (edited.root / "results" / "edits" / "figures" / "peaks.png").unlink()
    assert edited.stale() == {("figure", "peaks"), ("report",)}
