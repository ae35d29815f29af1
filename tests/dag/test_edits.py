"""What an edit runs again, and that it runs nothing else. All results of a study are there."""

import ast
import csv

import pytest
import yaml

RESNET, MOBILENET = "resnet18", "mobilenet_v3_large"
RESNET_PEAK = ("measure", "cpu1.resnet18.peak.r1")
MOBILENET_PEAK = ("measure", "cpu1.mobilenet_v3_large.peak.r1")
MIX = ("measure", "cpu1.shared.mix-3-1.r1")
ALL_CELLS = {RESNET_PEAK, MOBILENET_PEAK, MIX}
ALONE = [{"name": m, "servers": ["cpu1"], "tenants": [{"model": m}]} for m in (RESNET, MOBILENET)]
CODE = "EDITED = True\n"  # appended to a module, an edit that could change what it does
CEILING = ("ceiling", "cpu1")


def repositories(*models):
    return {(rule, scenario, model) for rule in ["repository"] for model in models
            for scenario in (f"cpu1.{model}", "cpu1.shared")}  # fmt: skip


@pytest.fixture(scope="module")
def figures(finished):
    return {job for job in finished.jobs() if job[0] == "figure"} | {("report",)}


@pytest.fixture(scope="module")
def downstream(figures):
    """Everything after the measurements."""
    return {("tables",), ("check_tables",), *figures}


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
    edits = {
        "config/config.yaml": "seed: 2",
        "config/prices.csv": "# edited",
        "scripts/perseus/traffic/client.py": CODE,
        "scripts/measure.py": CODE,
    }
    texts = {place: (edited.root / place).read_text() for place in edits}
    for place, text in texts.items():
        (edited.root / place).write_text(f"{text.replace('seed: 1', '')}\n{edits[place]}\n")
    assert edited.stale() != set()
    for place, text in texts.items():
        (edited.root / place).write_text(text)
    assert edited.stale() == set()


def test_a_price_of_another_machine(edited):
    edited.edit("config/prices.csv", ",0.526,0.215800,", ",0.527,0.215800,")  # g4dn.xlarge
    assert edited.stale() == set()


def test_columns_of_the_price_list_in_another_order(edited):
    path = edited.root / "config" / "prices.csv"
    with path.open(newline="") as file:
        rows = [row[::-1] for row in csv.reader(file)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert edited.stale() == set()


def test_another_study_leaves_this_one_alone(edited):
    other = ["--configfile", "config/studies/smoke.yaml"]
    assert all(edited.jobs(*other).values())
    assert edited.stale() == set()


class Rewritten(ast.NodeTransformer):
    """All docstrings are other texts."""

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = "Said in other words."
        return node


def test_comments_docstrings_and_formatting_of_all_code(edited):
    for path in (edited.root / "scripts").rglob("*.py"):
        tree = Rewritten().visit(ast.parse(path.read_text()))
        path.write_text(ast.unparse(tree) + "\n# what was commented, no longer is\n")
    assert edited.stale() == set()


def test_code_that_only_tells(edited):
    progress = (edited.root / "scripts/perseus/measurement/progress").glob("*.py")
    told = [f"measurement/progress/{path.stem}" for path in progress]
    for module in (*told, "host/job", "study/hints"):
        edited.append(f"scripts/perseus/{module}.py", CODE)
    assert edited.stale() == set()


def test_entries_of_registries_that_the_study_does_not_use(edited):
    for module, old, new in (
        ("presets", "ratio=1.15", "ratio=1.1"),
        (
            "runtimes",
            '"openvino": Runtime(',
            '"new": Runtime("New", ONNX, {}, True, True),\n    "openvino": Runtime(',
        ),
        ("launchers", '"docker": Launcher(', '"new": Launcher(),\n    "docker": Launcher('),
    ):
        path = edited.root / "scripts" / "perseus" / "study" / f"{module}.py"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    assert edited.stale() == set()


RAW_RESULTS = "scripts/perseus/measurement/raw_results.py"


def test_a_new_kind_of_experiment_brings_its_table_and_measures_nothing(edited, downstream):
    """Its windows have a phase of its own, which the meaning of that column tells."""
    rooms = ("study/experiments", "measurement/experiments", "results/tables", "report/figures")
    for room in rooms:
        folder = edited.root / "scripts" / "perseus" / room
        text = (folder / "concurrency.py").read_text().replace("concurrency", "new")
        (folder / "new.py").write_text(text)
    edited.edit("scripts/perseus/study/experiments/__init__.py", '("peak",', '("peak", "new",')
    experiment = edited.root / "scripts" / "perseus" / "measurement" / "experiments" / "new.py"
    assert 'system, "new", ' in experiment.read_text()
    edited.edit(RAW_RESULTS, "; of closed loops: ", "; of new ones: new; of closed loops: ")
    assert edited.stale() == downstream


def test_the_meaning_of_a_column(edited):
    edited.edit(RAW_RESULTS, '"median latency, from the intended send"', '"median of the latency"')
    assert edited.stale() == set()


# Edits of the configuration


def test_the_price_of_a_server(edited, downstream):
    edited.edit("config/prices.csv", "us-central1-a,0.0475,", "us-central1-a,0.0999,")
    assert edited.stale() == downstream


def test_the_style_of_the_figures(edited, figures):
    reconfigured(edited, lambda study: study["figures"].update(width_mm=120))
    assert edited.stale() == figures


def test_a_demand_a_higher_one_and_the_file_of_its_trace(edited, downstream):
    planned = downstream | {("figure", "fleets")}
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


def test_the_first_pricing_is_that_of_the_figures(edited, downstream):
    reconfigured(edited, lambda study: study.update(costs={"pricing": ["spot"]}))
    assert edited.stale() == downstream


def test_how_results_are_priced(edited, downstream):
    """None of it is measured."""

    def priced(**costs):
        reconfigured(edited, lambda study: study.update(costs=costs))
        return edited.stale()

    def bought(**price):
        row = {"instance": "n1-standard-1", "region": "us-central1"}
        reconfigured(edited, lambda study: study["servers"][0].update(price={**row, **price}))
        return edited.stale()

    assert priced(priced_on="2026-09-01") == downstream
    assert priced(usd_per_kwh=0.3) == downstream
    assert priced(pricing=["on_demand", "spot", "committed"]) == downstream
    assert priced(committed_discount=0.37) == downstream
    edited.append("own.csv", (edited.root / "config" / "prices.csv").read_text())
    assert priced(prices="own.csv", priced_on="2026-09-01") == downstream
    euros = {"currency": "EUR", "usd_per_currency_unit": 1.1}
    assert priced(prices="own.csv", priced_on="2026-09-01", **euros) == downstream
    assert priced() == set()
    told = {("report",)}  # it costs what it did; the page tells the configuration as it is written
    assert bought(share=1) == bought(zone="us-central1-a") == told
    assert bought(instance="n1-standard-4", share=0.25) == downstream
    rates = {"usd_per_vcpu_hour": 0.03, "usd_per_gib_hour": 0.004}
    assert bought(custom={"vcpus": 1, "memory_gib": 4, "on_demand": rates}) == downstream
    assert bought() == set()
    elsewhere = {"instance": "n1-standard-4", "region": "asia-east1", "share": 0.25}
    reconfigured(edited, lambda study: study["servers"][0].update(other_prices=[elsewhere]))
    assert edited.stale() == downstream


def test_the_sla_of_a_model(edited, downstream):
    reconfigured(edited, lambda study: study["models"][0]["sla"].update(latency_ms=120))
    assert edited.stale() == {RESNET_PEAK, MIX, *downstream}
    reconfigured(edited, lambda study: study["models"][0]["sla"].update(latency_ms=300))
    # A client may be late by a share of it.
    assert edited.stale() == {RESNET_PEAK, MIX, CEILING, *downstream}


def test_a_mix_added(edited, downstream):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][0]["mixes"].append([1, 1]))
    assert edited.stale() == {("measure", "cpu1.shared.mix-1-1.r1"), *downstream}


def test_closed_loops_added(edited, downstream):
    """They have a figure of their own, and need no dedicated peak."""
    loops = {"kind": "concurrency", "concurrencies": [1, 4]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(loops))
    cell = ("measure", "cpu1.shared.concurrency.r1")
    assert edited.stale() == {cell, ("figure", "concurrency"), *downstream}


def test_starts_of_a_server_added_and_one_more(edited, downstream):
    starts = {"kind": "startup", "starts": 2}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(starts))
    cell, drawn = ("measure", "cpu1.shared.startup.r1"), ("figure", "startup")
    assert edited.stale() == {cell, drawn, *downstream}
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(starts=3))
    assert edited.stale() == {cell, drawn, *downstream}


def test_a_frontier_added_and_one_more_point(edited, downstream):
    """Each point follows those before it, so that one more leaves them alone."""
    points = [("measure", f"cpu1.shared.frontier-{point}.r1") for point in (1, 2, 3)]
    frontier = {"kind": "frontier", "points": 2}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(frontier))
    assert edited.stale() == {*points[:2], *downstream}
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(points=3))
    assert edited.stale() == {points[2], *downstream}
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(predict=True))
    assert edited.stale() == {*points, *downstream}
    edited.run("--cores", "2", "all")
    edited.append("scripts/perseus/measurement/peaks/predicted_mix.py", CODE)
    assert edited.stale() == {*points, *downstream}


def test_a_demand_of_three_tenants_then_another_ratio_and_higher_rates(edited, downstream):
    """A frontier has a mix of its own for it, which alone is measured again."""
    planned = downstream | {("figure", "fleets")}
    mix = ("measure", "cpu1.three.mix-demand.r1")
    tenants = [{"model": RESNET}, {"model": MOBILENET}, {"model": RESNET, "name": "another"}]
    three = {"name": "three", "servers": ["cpu1"], "tenants": tenants}
    three["experiments"] = [{"kind": "frontier", "points": 3}]
    reconfigured(edited, lambda study: study["scenarios"].append(three))
    edited.run("--cores", "2", "all")

    def asked(resnet_rps, mobilenet_rps):
        rates = {RESNET: resnet_rps, MOBILENET: mobilenet_rps}
        models = [{"name": name, "rps": rps} for name, rps in rates.items()]
        reconfigured(edited, lambda study: study.update(demand={"models": models}))
        return edited.stale()

    assert asked(20, 30) == {mix, *planned}
    edited.run("--cores", "2", "all")
    assert asked(20, 60) == {mix, *planned}
    assert asked(40, 60) == planned
    assert asked(20, 30) == set()


def test_the_noise_of_the_host_asked_for(edited, downstream):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append({"kind": "aa"}))
    assert edited.stale() == {("measure", "cpu1.shared.aa.r1"), ("figure", "aa"), *downstream}


def test_pairs_asked_for_then_other_rates_then_more_rounds(edited, downstream):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append({"kind": "slowdown"}))
    cell, drawn = ("measure", "cpu1.shared.slowdown-30.r1"), ("figure", "slowdown")
    assert edited.stale() == {cell, drawn, *downstream}
    edited.run("--cores", "2", "all")

    def change(**keys):
        reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(keys))

    change(percent_of_peak=30)  # the default
    assert edited.stale() == set()
    change(percent_of_peak=40)
    assert edited.stale() == {("measure", "cpu1.shared.slowdown-40.r1"), drawn, *downstream}
    change(percent_of_peak=30, rounds=4)
    assert edited.stale() == {cell, drawn, *downstream}


def test_a_dedicated_peak_found_again_moves_rates_that_are_shares_of_it(edited, downstream):
    """Not those that are absolute."""
    share, rate = {"kind": "slowdown"}, {"kind": "slowdown", "rate_rps": 5}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].extend([share, rate]))
    edited.run("--cores", "2", "all")
    edited.append("scripts/perseus/measurement/experiments/peak.py", CODE)
    shares = ("measure", "cpu1.shared.slowdown-30.r1")
    assert edited.stale() == ALL_CELLS | {shares, ("figure", "slowdown"), *downstream}


def test_a_tenant_searched_beside_others_that_stay_and_at_other_rates(edited, downstream):
    cell, drawn = f"cpu1.shared.background-{RESNET}", ("figure", "background")

    def at(**rates):
        background = {"kind": "background", "search": RESNET} | rates
        reconfigured(
            edited,
            lambda s: s["scenarios"][0].update(
                experiments=[{"kind": "peak", "mixes": [[3, 1]]}, background]
            ),
        )

    at(percents_of_peak=[25])
    assert edited.stale() == {("measure", f"{cell}-25.r1"), drawn, *downstream}
    edited.run("--cores", "2", "all")
    at(percents_of_peak=[25, 50])
    assert edited.stale() == {("measure", f"{cell}-50.r1"), drawn, *downstream}
    at(rates_rps=[9])
    assert edited.stale() == {("measure", f"{cell}-at-9rps.r1"), drawn, *downstream}
    at(percents_of_peak=[25])
    assert edited.stale() == set()


REPLAY = ("measure", "cpu1.shared.replay-mmpp.r1")
REPLAYED = {REPLAY, ("figure", "replay")}


def with_replay(workflow, **settings):
    """A shared scenario that also offers bursts; what is edited then."""
    replay = {"kind": "replay", "process": "mmpp", "rates_rps": [5], **settings}
    reconfigured(workflow, lambda s: s["scenarios"][0]["experiments"].append(replay))
    workflow.run("--cores", "2", "all")
    assert workflow.stale() == set()


def test_bursts_asked_for_and_longer_ones(edited, downstream):
    replay = {"kind": "replay", "process": "mmpp", "rates_rps": [5]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(replay))
    assert edited.stale() == REPLAYED | downstream
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(burst_s=3))
    assert edited.stale() == set()  # the default
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(burst_s=5))
    assert edited.stale() == REPLAYED | downstream


def test_rates_of_bursts_that_follow_the_peaks(edited, downstream):
    with_replay(edited)
    edited.append("scripts/perseus/peak/search.py", CODE)
    drawn = {("figure", "replay")}
    assert edited.stale() == ALL_CELLS | drawn | downstream  # not the bursts of stated rates
    edited.accept()
    share = {"kind": "replay", "process": "mmpp", "percents_of_peak": [30]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].__setitem__(-1, share))
    edited.accept()
    edited.append("scripts/perseus/peak/search.py", CODE)
    assert edited.stale() == ALL_CELLS | REPLAYED | downstream


def test_the_file_of_a_trace_that_is_replayed(edited, downstream):
    for name in ("a.csv", "b.csv"):
        (edited.root / name).write_text("".join(f"{second}\n" for second in range(200)))
    traces = {"process": "trace", "traces": ["a.csv", "b.csv"], "name": "mmpp"}
    with_replay(edited, **traces)
    (edited.root / "a.csv").touch()
    assert edited.stale() == set()
    edited.append("b.csv", "201\n")
    assert edited.stale() == REPLAYED | downstream


def test_code_of_the_arrivals_of_bursts(edited, downstream):
    with_replay(edited)
    edited.append("scripts/perseus/traffic/mmpp.py", CODE)
    assert edited.stale() == REPLAYED | downstream


def test_a_soak_added_and_made_longer(edited, downstream):
    """Its rates are shares of the dedicated peaks, which were measured."""
    soak = {"kind": "soak", "percents_of_peak": [40, 30]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(soak))
    cell, drawn = ("measure", "cpu1.shared.soak-40-30.r1"), ("figure", "soak")
    assert edited.stale() == {cell, drawn, *downstream}
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(duration_s=7200))
    assert edited.stale() == {cell, drawn, *downstream}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].pop("duration_s"))
    assert edited.stale() == set()


def test_a_soak_at_shares_of_peaks_is_measured_again_with_them_and_at_given_rates_is_not(
    edited, downstream
):
    def add(study):
        for level in ({"percents_of_peak": [40, 30]}, {"rates_rps": [5, 10]}):
            study["scenarios"][0]["experiments"].append({"kind": "soak"} | level)

    reconfigured(edited, add)
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda study: study["measurement"].update(repeats=2))
    measured = {name for rule, name in (job[:2] for job in edited.stale() if len(job) > 1)
                if rule == "measure" and ".soak-" in name}  # fmt: skip
    shares, given = "cpu1.shared.soak-40-30", "cpu1.shared.soak-5-10rps"
    assert measured == {f"{shares}.r1", f"{shares}.r2", f"{given}.r2"}


EVERY_KIND = [
    {"kind": "concurrency", "concurrencies": [1, 4]},
    {"kind": "startup", "starts": 2},
    {"kind": "frontier", "points": 2},
    {"kind": "aa"},
    {"kind": "slowdown"},
    {"kind": "background", "search": RESNET, "percents_of_peak": [25]},
    {"kind": "replay", "process": "mmpp", "rates_rps": [5]},
    {"kind": "soak", "percents_of_peak": [40, 30]},
]


def test_an_experiment_of_each_kind_removed(edited, downstream):
    """It measures nothing, and the figure of the kind goes with it."""

    def ask(*others):
        first = {"kind": "peak", "mixes": [[3, 1]]}
        reconfigured(edited, lambda s: s["scenarios"][0].update(experiments=[first, *others]))
        return {("figure", each["kind"]) for each in others if each["kind"] != "frontier"}

    ask(*EVERY_KIND)
    edited.run("--cores", "2", "all")
    for i, removed in enumerate(EVERY_KIND):
        drawn = ask(*EVERY_KIND[:i], *EVERY_KIND[i + 1 :])
        assert edited.stale() == drawn | downstream, removed["kind"]
    ask()
    assert edited.stale() == downstream


def varied(edited, **vary):
    grid = {"vary": vary}
    reconfigured(edited, lambda study: study["scenarios"][0].update(grid=grid))


def of_variant(more):
    """What measures the scenario with one setting, of the tenants' own."""
    shared = f"cpu1.shared{more}"
    repository = {
        ("repository", scenario, f"{model}{more}")
        for model in (RESNET, MOBILENET)
        for scenario in (f"cpu1.{model}{more}", shared)
    }
    alone = {("measure", f"cpu1.{model}{more}.peak.r1") for model in (RESNET, MOBILENET)}
    return repository | alone | {("measure", f"{shared}.mix-3-1.r1")}


def test_a_grid_added_a_value_more_and_one_less(edited, downstream):
    """What a setting has in common with the scenario, or with another grid, is there already."""
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


def test_a_screening_that_has_half_of_its_cells(edited, downstream):
    varied(edited, instances=[1, 2], max_batch_size=[8, 16])
    record = "results/edits/raw/cpu1.shared~instances-2.mix-3-1.r1/record.json"
    edited.run("--cores", "2", record)
    new = of_variant("~batch-16") | of_variant("~instances-2~batch-16")
    assert edited.stale() == new | {("figure", "grid"), *downstream}


def test_a_runtime_of_a_grid_needs_no_other_ceiling_of_the_client(edited, downstream):
    varied(edited, runtime=["onnxruntime", "openvino"])
    new = {(job[0], *(part.replace("cpu1.", "cpu1~runtime-openvino.") for part in job[1:]))
           for job in of_variant("")}  # fmt: skip
    assert edited.stale() == new | {("figure", "grid"), *downstream}


def test_cores_of_a_grid_have_a_ceiling_of_their_own_where_this_machine_has_them(
    edited, downstream
):
    varied(edited, cores=[1, 100_000])
    assert edited.stale() == {("figure", "grid"), *downstream}
    new = {(job[0], *(part.replace("cpu1.", "cpu1~cores-2.") for part in job[1:]))
           for job in of_variant("")} | {("ceiling", "cpu1~cores-2")}  # fmt: skip
    varied(edited, cores=[1, 2])
    elsewhere = ("--jobs", "2", "--cores", "2")  # as a profile of a cluster has it
    assert edited.stale(*elsewhere) == new | {("figure", "grid"), *downstream}


def test_the_bounds_of_a_grid(edited, downstream):
    varied(edited, instances=[1, 2])
    edited.run("--cores", "2", "all")
    bounds = {"p95_ms": 40, "relative_error": 0.1}
    reconfigured(edited, lambda s: s["scenarios"][0]["grid"].update(at_most=bounds))
    assert edited.stale() == {("figure", "grid"), *downstream}


def test_the_precision_of_a_tenant(edited, downstream):
    reconfigured(edited, lambda study: study["servers"][0].update(runtime="openvino"))
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["tenants"][0].update(precision="int8"))
    converted = {("convert", "int8")}  # its model is told of its input
    assert edited.stale() == converted | repositories(RESNET) | {RESNET_PEAK, MIX, *downstream}


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
    """What is left was measured; what combines it changes. There is no choice to draw."""
    reconfigured(edited, lambda study: study.update(scenarios=ALONE))
    of_a_choice = {("figure", "break_even"), ("figure", "cost_map")}
    assert edited.stale() == downstream - of_a_choice


def test_a_repeat_added(edited, downstream):
    """The rates of a mix are shares of the mean dedicated peaks, so the mix is measured again."""
    reconfigured(edited, lambda study: study["measurement"].update(repeats=2))
    second = {(rule, cell.replace(".r1", ".r2")) for rule, cell in ALL_CELLS}
    assert edited.stale() == {*second, MIX, *downstream}


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
    """Its network moves into a step; no other tenant, nor any export, is touched."""
    reconfigured(
        edited, lambda study: study["scenarios"][0]["tenants"][1].update(preprocessing="server")
    )
    scenarios = (f"cpu1.{MOBILENET}", "cpu1.shared")
    ensembles = {("ensemble", scenario, MOBILENET) for scenario in scenarios}
    networks = {("repository", scenario, f"{MOBILENET}.network") for scenario in scenarios}
    # The name of each model that Triton serves stands in the tasks of all of the same scenario.
    sibling = ("repository", "cpu1.shared", RESNET)
    pictures, measured = ("pictures", MOBILENET), {MOBILENET_PEAK, MIX, *downstream}
    served = {pictures, sibling, *ensembles, *networks}
    assert edited.stale() == {*served, CEILING, *measured}
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    (edited.root / "photos" / "1.jpg").write_bytes(b"another photo")
    exported = {("export", MOBILENET), pictures, *ensembles, *networks, CEILING}
    assert edited.stale() == {*exported, *measured}
    edited.accept()
    edited.append("scripts/perseus/models/preprocess.py", CODE)
    assert {*ensembles, *ALL_CELLS} < edited.stale()
    assert not {job for job in edited.stale() if job[0] in ("export", "repository")}


def test_a_client_that_preprocesses(edited, downstream):
    reconfigured(
        edited, lambda study: study["scenarios"][0]["tenants"][1].update(preprocessing="client")
    )
    assert edited.stale() == {("pictures", MOBILENET), MOBILENET_PEAK, MIX, *downstream}


def test_the_precision_of_the_study(edited, downstream):
    reconfigured(
        edited, lambda study: study.update(measurement={"precision": "standard", "repeats": 1})
    )
    assert edited.stale() == ALL_CELLS | downstream


def test_the_preset_of_one_scenario(edited, downstream):
    """It measures its dedicated peaks apart; those of the other scenarios stand."""
    other = {"name": "other", "experiments": [{"kind": "peak", "mixes": [[1, 1]]}]}
    reconfigured(edited, lambda s: s["scenarios"].append({**s["scenarios"][0], **other}))
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda study: study["scenarios"][1].update(preset="smoke"))
    own = {(rule, cell.replace(".peak.", ".peak-smoke.")) for rule, cell in ALL_CELLS - {MIX}}
    assert edited.stale() == {*own, ("measure", "cpu1.other.mix-1-1.r1"), *downstream}
    reconfigured(edited, lambda study: study["scenarios"][1].update(preset="quick"))
    assert edited.stale() == set()  # which is the study's


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


def test_the_launcher_and_the_image_of_a_server(edited, downstream):
    reconfigured(
        edited, lambda study: study["servers"][0].update(launcher="docker", image="triton:1")
    )
    assert edited.stale() == ALL_CELLS | downstream
    edited.accept()
    edited.append("scripts/backends/onnxruntime/model.py", CODE)  # the image has one of its own
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


def test_an_onnx_file_of_ones_own_in_place_of_an_architecture_and_what_stands_in_it(
    edited, downstream
):
    def take(study):
        (model,) = (each for each in study["models"] if each["name"] == RESNET)
        for key in ("architecture", "weights"):
            model.pop(key, None)
        model["onnx"] = "weights/own.onnx"

    (edited.root / "weights" / "own.onnx").write_bytes(b"a network")
    reconfigured(edited, take)
    again = {("own_onnx", RESNET), *repositories(RESNET), CEILING, RESNET_PEAK, MIX, *downstream}
    assert edited.stale() == again
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()
    (edited.root / "weights" / "own.onnx").write_bytes(b"another network")
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
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


# Edits of the code


@pytest.mark.parametrize("module", ["perseus/peak/search.py", "backends/onnxruntime/model.py"])
def test_code_of_the_measurement(edited, downstream, module):
    edited.append(f"scripts/{module}", CODE)
    assert edited.stale() == ALL_CELLS | downstream


def test_code_of_the_client(edited, downstream):
    edited.append("scripts/perseus/traffic/client.py", CODE)
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


def test_code_of_the_null_model(edited, downstream):
    edited.append("scripts/backends/null/model.py", CODE)
    assert edited.stale() == {CEILING} | downstream


def test_the_way_of_the_requests(edited, downstream):
    client = {"shared_memory": True}
    reconfigured(edited, lambda study: study["measurement"].update(client=client))
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


@pytest.mark.parametrize("statement", ["import perseus.peak.added", "from . import added"])
def test_a_module_however_it_is_imported(edited, downstream, statement):
    (edited.root / "scripts" / "perseus" / "peak" / "added.py").write_text("FACTOR = 1\n")
    edited.append("scripts/perseus/peak/search.py", f"{statement}\n")
    edited.accept()
    assert edited.stale() == set()
    edited.edit("scripts/perseus/peak/added.py", "FACTOR = 1", "FACTOR = 2")
    assert edited.stale() == ALL_CELLS | downstream


def test_code_of_what_the_study_does_not_do(edited):
    for module in (
        "perseus/measurement/experiments/concurrency",
        "perseus/serving/launchers/docker",
        "perseus/models/runtimes/openvino",
        "backends/openvino/model",
    ):
        edited.append(f"scripts/{module}.py", CODE)
    assert edited.stale() == set()


@pytest.mark.parametrize("module", ["measurement/experiments/peak", "serving/launchers/embedded"])
def test_code_that_is_found_by_name(edited, downstream, module):
    edited.append(f"scripts/perseus/{module}.py", CODE)
    ceiling = {CEILING} if "launchers" in module else set()
    assert edited.stale() == ALL_CELLS | ceiling | downstream


def test_code_of_the_repository(edited, downstream):
    """A measurement serves what it writes."""
    edited.append("scripts/perseus/models/repository.py", CODE)
    assert edited.stale() == repositories(RESNET, MOBILENET) | ALL_CELLS | downstream


def test_code_of_the_export(edited):
    edited.append("scripts/perseus/models/onnx_export.py", CODE)
    assert edited.stale() == set(edited.jobs())


def test_code_of_the_tables(edited, downstream):
    edited.append("scripts/perseus/results/savings.py", CODE)
    assert edited.stale() == downstream


def test_code_of_the_check_of_the_tables(edited):
    edited.append("scripts/perseus/results/between_tables.py", CODE)
    assert edited.stale() == {("check_tables",), ("report",)}


def test_code_of_the_figures(edited, figures):
    edited.append("scripts/perseus/report/style.py", CODE)
    assert edited.stale() == figures


def test_what_a_figure_and_a_table_say_for_the_page(edited, downstream):
    edited.append("scripts/perseus/report/figures/peaks.py", CODE)
    assert edited.stale() == {("figure", "peaks"), ("report",)}
    edited.append("scripts/perseus/results/tables/concurrency.py", CODE)
    assert edited.stale() == downstream


@pytest.mark.parametrize("part", ["page.html", "cells.html", "page.css", "tables.js"])
def test_a_part_of_the_page(edited, part):
    edited.append(f"scripts/perseus/report/templates/{part}", "\n")
    assert edited.stale() == {("report",)}


def test_an_entry_script(edited, downstream):
    edited.append("scripts/tables.py", CODE)
    assert edited.stale() == downstream


# Other versions of what is measured


@pytest.mark.parametrize("package", ["nvidia-pytriton", "tritonclient", "hpack"])
def test_an_upgrade_of_what_serves_or_asks(edited, downstream, package):
    edited.upgrade(package)
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


@pytest.mark.parametrize("package", ["onnxruntime", "torch"])
def test_an_upgrade_of_what_exports(edited, package):
    """One of onnxruntime, which also serves, measures again even where the export is the same."""
    edited.upgrade(package)
    assert edited.stale() == set(edited.jobs())


def test_an_upgrade_of_what_measures_nothing_here(edited):
    for package in ("openvino", "aiohttp", "grpcio", "pandas"):
        edited.upgrade(package)
    assert edited.stale() == set()


def test_an_image_that_is_built_anew(edited, downstream):
    image = edited.root / "triton.sif"
    image.write_bytes(b"image")
    server = {"launcher": "apptainer", "image": "triton.sif"}
    reconfigured(edited, lambda study: study["servers"][0].update(server))
    edited.accept()
    image.touch()
    assert edited.stale() == set()
    image.write_bytes(b"built anew")
    assert edited.stale() == ALL_CELLS | downstream


def test_a_plan_is_built_anew_for_another_image(edited):
    """It is built by the TensorRT of the image that serves it."""
    price = {"instance": "n1-standard-1", "region": "us-central1", "accelerator": "T4"}
    server = {"device": "gpu", "gpus": [0], "launcher": "docker", "runtime": "tensorrt"}
    server["price"] = price
    images = [{"image": f"triton:{version}"} for version in (1, 2)]
    reconfigured(edited, lambda study: study.update(scenarios=ALONE))
    reconfigured(edited, lambda study: study["servers"][0].update(server | images[0]))
    edited.run("--cores", "2", "--no-hooks", "all")  # without hooks nothing looks for GPUs
    assert edited.stale() == set()
    reconfigured(edited, lambda study: study["servers"][0].update(images[1]))
    jobs = edited.jobs()
    assert ("tensorrt", "cpu1", RESNET) in jobs
    exports = {job for job in jobs if job[0] == "export"}
    assert edited.stale() == set(jobs) - exports - {CEILING}


# Results that were lost


def test_a_lost_figure_is_drawn_again(edited):
    (edited.root / "results" / "edits" / "figures" / "peaks.png").unlink()
    assert edited.stale() == {("figure", "peaks"), ("report",)}
