"""The jobs that run again after an edit of prices, demand, models, servers, tenants or evidence."""

import os

import onnx
import pytest
from dag.edits.edited_study import (
    ALL_CELLS,
    ALONE,
    CEILING,
    CODE,
    MIX,
    MOBILENET,
    MOBILENET_PEAK,
    RESNET,
    RESNET_PEAK,
    reconfigured,
    repositories,
)
from onnx_files import network


def test_the_price_of_a_server(edited, priced_jobs):
    edited.edit("config/prices.csv", "us-central1-a,0.0475,", "us-central1-a,0.0999,")
    assert edited.stale() == priced_jobs


def test_the_style_of_the_figures(edited, figures):
    reconfigured(edited, lambda study: study["figures"].update(width_mm=120))
    assert edited.stale() == figures


def test_a_demand_a_higher_one_and_the_file_of_its_trace(edited, priced_jobs):
    planned = priced_jobs | {("figure", "fleets")}
    times = edited.root / "day.txt"
    times.write_text("\n".join(map(str, range(200))))
    asked = [{"name": RESNET, "rps": 20}, {"name": MOBILENET, "trace": "day.txt"}]
    reconfigured(edited, lambda study: study.update(demand={"models": asked}))
    assert edited.stale() == planned
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    reconfigured(edited, lambda study: study["demand"].update(headroom=0.1))
    assert edited.stale() == planned
    edited.accept()
    times.write_text("\n".join(str(i / 2) for i in range(200)))
    assert edited.stale() == planned


def test_the_first_pricing_is_that_of_the_figures(edited, priced_jobs):
    reconfigured(edited, lambda study: study.update(costs={"pricing": ["spot"]}))
    assert edited.stale() == priced_jobs


def test_how_results_are_priced(edited, priced_jobs):
    """After an edit of a price, no cell is measured again."""

    def priced(**costs):
        reconfigured(edited, lambda study: study.update(costs=costs))
        return edited.stale()

    def bought(**price):
        row = {"instance": "n1-standard-1", "region": "us-central1"}
        reconfigured(edited, lambda study: study["servers"][0].update(price={**row, **price}))
        return edited.stale()

    assert priced(priced_on="2026-09-01") == priced_jobs
    assert priced(usd_per_kwh=0.3) == priced_jobs
    assert priced(pricing=["on_demand", "spot", "committed"]) == priced_jobs
    assert priced(committed_discount=0.37) == priced_jobs
    edited.append("own.csv", (edited.root / "config" / "prices.csv").read_text())
    assert priced(prices="own.csv", priced_on="2026-09-01") == priced_jobs
    euros = {"currency": "EUR", "usd_per_currency_unit": 1.1}
    assert priced(prices="own.csv", priced_on="2026-09-01", **euros) == priced_jobs
    assert priced() == set()
    # the price stays the same, but the report shows the configuration as it is written
    told = {("report",)}
    assert bought(share=1) == bought(zone="us-central1-a") == told
    assert bought(instance="n1-standard-4", share=0.25) == priced_jobs
    rates = {"usd_per_vcpu_hour": 0.03, "usd_per_gib_hour": 0.004}
    assert bought(custom={"vcpus": 1, "memory_gib": 4, "on_demand": rates}) == priced_jobs
    assert bought() == set()
    elsewhere = {"instance": "n1-standard-4", "region": "asia-east1", "share": 0.25}
    reconfigured(edited, lambda study: study["servers"][0].update(other_prices=[elsewhere]))
    assert edited.stale() == priced_jobs


def test_the_sla_of_a_model(edited, downstream):
    reconfigured(edited, lambda study: study["models"][0]["sla"].update(latency_ms=120))
    assert edited.stale() == {RESNET_PEAK, MIX, *downstream}
    reconfigured(edited, lambda study: study["models"][0]["sla"].update(latency_ms=300))
    # The largest allowed send lag is a share of the latency limit.
    assert edited.stale() == {RESNET_PEAK, MIX, CEILING, *downstream}


def test_the_precision_of_a_tenant(edited, downstream):
    reconfigured(edited, lambda study: study["servers"][0].update(runtime="openvino"))
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["tenants"][0].update(precision="int8"))
    converted = {("convert", "int8")}  # the conversion to int8 needs the shape of the model's input
    assert edited.stale() == converted | repositories(RESNET) | {RESNET_PEAK, MIX, *downstream}


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
        ("repository", "cpu1.squeezenet1_1"),
        ("repository", "cpu1.pair"),
        ("measure", "cpu1.squeezenet1_1.peak.r1"),
        ("measure", "cpu1.pair.mix-1-1.r1"),
        CEILING,
        *downstream,
    }


def test_a_scenario_removed(edited, downstream):
    """No cell is measured again. Without a mix, the study has no figures that compare shared and
    dedicated servers."""
    reconfigured(edited, lambda study: study.update(scenarios=ALONE))
    of_a_choice = {("figure", "break_even"), ("figure", "cost_map")}
    assert edited.stale() == downstream - of_a_choice


def test_a_repeat_added(edited, downstream):
    """The rates of a mix are shares of the mean dedicated peaks, so the mix is measured again."""
    reconfigured(edited, lambda study: study["measurement"].update(repeats=2))
    second = {(rule, cell.replace(".r1", ".r2")) for rule, cell in ALL_CELLS}
    together = {("repeats", cell.removesuffix(".r1")) for _, cell in (RESNET_PEAK, MOBILENET_PEAK)}
    assert edited.stale() == {*second, MIX, *together, *downstream}


def test_the_instances_of_a_tenant(edited, downstream):
    reconfigured(edited, lambda study: study["scenarios"][0]["tenants"][0].update(instances=2))
    assert edited.stale() == repositories(RESNET) | {RESNET_PEAK, MIX, *downstream}


@pytest.mark.parametrize(
    ("settings", "also"),
    [
        ({"priority": 1}, repositories(RESNET)),
        ({"max_batch_size": 4}, repositories(RESNET)),
        ({"request_batch_size": 2}, {CEILING}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_how_a_tenant_is_served_and_asked(edited, downstream, settings, also):
    reconfigured(edited, lambda study: study["scenarios"][0]["tenants"][0].update(settings))
    assert edited.stale() == {RESNET_PEAK, MIX, *also, *downstream}


def test_threads_that_a_tenant_has_anyway_are_told_in_the_report(edited):
    reconfigured(edited, lambda s: s["scenarios"][0]["tenants"][0].update(intra_op_threads=1))
    assert edited.stale() == {("report",)}


def test_the_seed_is_in_all_that_is_drawn(edited):
    reconfigured(edited, lambda study: study.update(seed=2))
    assert edited.stale() == set(edited.jobs())


def test_other_arrivals(edited, downstream):
    arrivals = {"process": "gamma", "cv": 2}
    reconfigured(edited, lambda study: study["measurement"].update(arrivals=arrivals))
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


def test_a_tenant_that_is_sent_pictures_and_what_it_is_asked_about(edited, downstream):
    """Only the repositories with this tenant are made again. No export runs again.

    On the server, the network of the tenant becomes a step of an ensemble. If an image changes, the
    network is exported again.
    """
    reconfigured(
        edited, lambda study: study["scenarios"][0]["tenants"][1].update(preprocessing="server")
    )
    served = repositories(MOBILENET)
    drawn = ("figure", "preprocessing")
    pictures, measured = ("pictures", MOBILENET), {MOBILENET_PEAK, MIX, drawn, *downstream}
    assert edited.stale() == {pictures, *served, CEILING, *measured}
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    (edited.root / "photos" / "1.jpg").write_bytes(b"another photo")
    exported = {("export", MOBILENET), pictures, *served, CEILING}
    assert edited.stale() == {*exported, *measured}
    edited.accept()
    edited.append("scripts/perseus/models/preprocess.py", CODE)
    assert {*served, *ALL_CELLS} < edited.stale()
    others = repositories(RESNET) - served
    assert not {job for job in edited.stale() if job[0] == "export" or job in others}


def test_nothing_of_before_is_left_in_a_repository_that_is_made_again(edited):
    """Snakemake empties the folder before the job, because Triton would serve old files."""
    repository = edited.root / "model_repository/edits/cpu1.shared"
    made = {path.name for path in repository.iterdir()}
    for gone in (repository / "gone" / "1", repository / ".gone"):
        gone.mkdir(parents=True)
        (gone / "model.onnx").touch()
    reconfigured(edited, lambda study: study["scenarios"][0]["tenants"][0].update(instances=2))
    edited.run("--cores", "2", str(repository.relative_to(edited.root)))
    assert {path.name for path in repository.iterdir()} == made


def test_a_client_that_preprocesses(edited, downstream):
    reconfigured(
        edited, lambda study: study["scenarios"][0]["tenants"][1].update(preprocessing="client")
    )
    measured = {MOBILENET_PEAK, MIX, ("figure", "preprocessing"), *downstream}
    # The repositories contain the responses of torch to the pictures.
    assert edited.stale() == {("pictures", MOBILENET), *repositories(MOBILENET), *measured}


def test_the_precision_of_the_study(edited, downstream):
    reconfigured(
        edited, lambda study: study.update(measurement={"precision": "standard", "repeats": 1})
    )
    assert edited.stale() == ALL_CELLS | downstream


def test_the_preset_of_one_scenario(edited, downstream):
    """The scenario gets its own dedicated peaks. The peaks of the other scenarios stay valid."""
    other = {"name": "other", "experiments": [{"kind": "peak", "mixes": [[1, 1]]}]}
    reconfigured(edited, lambda s: s["scenarios"].append({**s["scenarios"][0], **other}))
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda study: study["scenarios"][1].update(preset="smoke"))
    own = {(rule, cell.replace(".peak.", ".peak-smoke.")) for rule, cell in ALL_CELLS - {MIX}}
    assert edited.stale() == {*own, ("measure", "cpu1.other.mix-1-1.r1"), *downstream}
    reconfigured(edited, lambda study: study["scenarios"][1].update(preset="quick"))
    assert edited.stale() == set()  # `quick` is the preset of the study


def test_the_name_of_a_served_model_and_its_shape(edited, downstream):
    def serve(study):
        study["models"][0] = {"name": RESNET, "served_model": "a", "sla": {"latency_ms": 100}}
        study["models"][1] = {"name": MOBILENET, "served_model": "b", "sla": {"latency_ms": 50}}
        study["servers"][0].update(launcher="remote", remote={"host": "10.0.0.7"})

    reconfigured(edited, serve)
    assert edited.stale() == ALL_CELLS | downstream
    edited.run("--cores", "2", "all")
    assert set(edited.jobs()) == ALL_CELLS | downstream
    reconfigured(edited, lambda study: study["models"][0].update(served_model="c"))
    assert edited.stale() == {RESNET_PEAK, MIX, *downstream}
    edited.accept()
    reconfigured(edited, lambda study: study["models"][1].update(shape={"tokens": [8]}))
    assert edited.stale() == {MOBILENET_PEAK, MIX, *downstream}
    (edited.root / "samples.npz").write_bytes(b"examples")
    reconfigured(edited, lambda study: study["models"][1].update(inputs="samples.npz"))
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    (edited.root / "samples.npz").write_bytes(b"other examples")
    assert edited.stale() == {MOBILENET_PEAK, MIX, *downstream}


def test_the_launcher_and_the_image_of_a_server(edited, downstream):
    reconfigured(
        edited, lambda study: study["servers"][0].update(launcher="docker", image="triton:1")
    )
    assert edited.stale() == ALL_CELLS | downstream
    edited.accept()
    edited.append("scripts/backends/onnxruntime/model.py", CODE)  # the image has another backend
    assert edited.stale() == set()
    reconfigured(edited, lambda study: study["servers"][0].update(image="triton:2"))
    assert edited.stale() == ALL_CELLS | downstream


def test_the_input_size_of_a_model(edited, downstream):
    reconfigured(edited, lambda study: study["models"][1].update(input_size=128))
    exported = {("export", MOBILENET), *repositories(MOBILENET), CEILING}
    assert edited.stale() == exported | {MOBILENET_PEAK, MIX, *downstream}


@pytest.mark.parametrize("is_old", [False, True])
def test_new_weights_in_the_same_file(edited, downstream, is_old):
    """After `mv`, `cp -p` or `rsync -a`, new weights may be older than the results."""
    weights = edited.root / "weights" / "resnet18.pt"
    weights.write_bytes(b"better weights")
    if is_old:
        os.utime(weights, (1, 1))
    exported = {("export", RESNET), *repositories(RESNET), CEILING}
    assert edited.stale() == exported | {RESNET_PEAK, MIX, *downstream}


def take_onnx(study):
    (model,) = (each for each in study["models"] if each["name"] == RESNET)
    for key in ("architecture", "weights"):
        model.pop(key, None)
    model["onnx"] = "weights/own.onnx"


def test_an_onnx_file_of_ones_own_in_place_of_an_architecture_and_what_stands_in_it(
    edited, downstream
):
    onnx.save(network(), edited.root / "weights" / "own.onnx")
    reconfigured(edited, take_onnx)
    again = {("own_onnx", RESNET), *repositories(RESNET), CEILING, RESNET_PEAK, MIX, *downstream}
    assert edited.stale() == again
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    onnx.save(network(pixels=(48, 48)), edited.root / "weights" / "own.onnx")
    assert edited.stale() == again


def test_weights_beside_an_onnx_file(edited, downstream):
    place, data = edited.root / "weights" / "own.onnx", edited.root / "weights" / "own.data"
    onnx.save(network(), place, save_as_external_data=True, location="own.data", size_threshold=0)
    reconfigured(edited, take_onnx)
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    data.write_bytes(data.read_bytes()[::-1])
    os.utime(data, (1, 1))
    again = {("own_onnx", RESNET), *repositories(RESNET), CEILING, RESNET_PEAK, MIX, *downstream}
    assert edited.stale() == again


@pytest.mark.parametrize("name", ["8.jpg", "0.png"], ids=["edited", "new"])
def test_an_image_of_a_model(edited, downstream, name):
    (edited.root / "photos" / name).write_bytes(b"another photo")
    exported = {("export", MOBILENET), *repositories(MOBILENET), CEILING}
    assert edited.stale() == exported | {MOBILENET_PEAK, MIX, *downstream}


def test_files_beside_the_images_that_are_used(edited):
    for name in ("9.jpg", "0.txt", ".0.jpg"):
        (edited.root / "photos" / name).write_bytes(b"not used")
    assert edited.stale() == set()


def test_the_trace_of_the_arrivals(edited, downstream):
    (edited.root / "trace.csv").write_text("time_s\n0\n1\n3\n")
    arrivals = {"process": "trace", "trace": "trace.csv"}
    reconfigured(edited, lambda study: study["measurement"].update(arrivals=arrivals))
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream
    edited.accept()
    assert edited.stale() == set()
    edited.append("trace.csv", "4\n")
    os.utime(edited.root / "trace.csv", (1, 1))
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


def test_the_way_of_the_requests(edited, downstream):
    client = {"shared_memory": True}
    reconfigured(edited, lambda study: study["measurement"].update(client=client))
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream
