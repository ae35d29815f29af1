"""The jobs that run again if an experiment of each kind is added, edited or removed."""

from dag.edits.edited_study import ALL_CELLS, CODE, MOBILENET, RESNET, reconfigured


def test_a_mix_added(edited, downstream):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][0]["mixes"].append([1, 1]))
    assert edited.stale() == {("measure", "cpu1.shared.mix-1-1.r1"), *downstream}


def test_closed_loops_added(edited, priced_jobs):
    """An experiment with closed loops has its own figure and needs no dedicated peak."""
    loops = {"kind": "concurrency", "concurrencies": [1, 4]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(loops))
    cell = ("measure", "cpu1.shared.concurrency.r1")
    assert edited.stale() == {cell, ("figure", "concurrency"), *priced_jobs}


def test_a_catalogue_of_more_networks_and_another_sla(edited):
    """A new network does not repeat the measurements of other networks. New labels of images repeat
    all measurements. No cell searches for a peak."""

    def catalogue(architectures, **settings):
        def change(study):
            sla = study["models"][0]["sla"]
            each = {"name": "each", "images": "photos", "architectures": architectures}
            study["models"] = [each | {"sla": sla}]
            (scenario,) = study["scenarios"]
            scenario["tenants"] = [{"model": "each"}]
            scenario["experiments"] = [{"kind": "catalogue", **settings}]

        reconfigured(edited, change)
        return {
            job for job in edited.stale() if job[0] in ("measure", "labelled", "export", "ceiling")
        }

    both = {("measure", f"cpu1.{name}.catalogue.r1") for name in (RESNET, "resnet34")}
    of_resnet = ("measure", f"cpu1.{RESNET}.catalogue.r1")
    assert catalogue([RESNET]) >= {of_resnet}
    edited.run("--cores", "2", "all")
    assert catalogue([RESNET]) == set()
    assert catalogue([RESNET, "resnet34"]) == {*both, ("export", "resnet34")} - {of_resnet}
    assert catalogue([RESNET], times_unloaded=4) == {of_resnet}
    assert catalogue([RESNET], in_process_s=1) == {of_resnet}
    labels = edited.root / "photos" / "labels.csv"
    labels.write_text("file,class\n1.jpg,7\n")
    assert catalogue([RESNET]) == {("labelled",), of_resnet}
    edited.run("--cores", "2", "all")
    assert catalogue([RESNET]) == set()
    labels.write_text("file,class\n1.jpg,8\n")
    assert catalogue([RESNET]) == {("labelled",), of_resnet}


def test_a_catalogue_added_for_a_model_that_is_also_searched(edited, priced_jobs):
    tenant = {"model": RESNET, "name": "eights", "request_batch_size": 8}
    eights = {"name": "eights", "servers": ["cpu1"], "tenants": [tenant]}
    eights["experiments"] = [{"kind": "catalogue"}]
    reconfigured(edited, lambda s: s["scenarios"].append(eights))
    own = {("repository", "cpu1.eights"), ("measure", "cpu1.eights.catalogue.r1")}
    assert edited.stale() == {*own, ("figure", "catalogue"), *priced_jobs}


def test_starts_of_a_server_added_and_one_more(edited, priced_jobs):
    starts = {"kind": "startup", "starts": 2}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(starts))
    cell, drawn = ("measure", "cpu1.shared.startup.r1"), ("figure", "startup")
    assert edited.stale() == {cell, drawn, *priced_jobs}
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(starts=3))
    assert edited.stale() == {cell, drawn, *priced_jobs}


def test_a_frontier_added_and_one_more_point(edited, downstream):
    """A mix of a frontier depends only on earlier mixes, so a new mix does not repeat the earlier
    mixes."""
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


def test_a_model_beside_a_copy_of_itself_added_where_mixes_are_predicted(edited):
    """The predictions of the mixes use this measurement, so the frontier is measured again."""
    frontier = {"kind": "frontier", "points": 2, "predict": True}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(frontier))
    edited.run("--cores", "2", "all")
    twice = {
        "name": "twice",
        "servers": ["cpu1"],
        "experiments": [{"kind": "peak", "mixes": [[1, 1]]}],
    }
    twice["tenants"] = [{"model": RESNET}, {"model": RESNET, "name": "copy"}]
    reconfigured(edited, lambda s: s["scenarios"].append(twice))
    measured = {job for job in edited.stale() if job[0] == "measure"}
    points = {("measure", f"cpu1.shared.frontier-{point}.r1") for point in (1, 2)}
    copies = {("measure", "cpu1.copy.peak.r1"), ("measure", "cpu1.twice.mix-1-1.r1")}
    assert measured == points | copies
    edited.run("--cores", "2", "all")
    assert edited.stale() == set()


def test_a_demand_of_three_tenants_then_another_ratio_and_higher_rates(
    edited, downstream, priced_jobs
):
    """A frontier of three tenants has a separate mix for the demand. If the demand has another
    ratio of rates, Perseus measures only this mix again."""
    drawn = ("figure", "fleets")
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

    assert asked(20, 30) == {mix, drawn, *downstream}
    edited.run("--cores", "2", "all")
    assert asked(20, 60) == {mix, drawn, *downstream}
    assert asked(40, 60) == {drawn, *priced_jobs}
    assert asked(20, 30) == set()


def test_the_noise_of_the_host_asked_for(edited, priced_jobs):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append({"kind": "aa"}))
    assert edited.stale() == {("measure", "cpu1.shared.aa.r1"), ("figure", "aa"), *priced_jobs}


def test_pairs_asked_for_then_other_rates_then_more_rounds(edited, priced_jobs):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append({"kind": "slowdown"}))
    cell, drawn = ("measure", "cpu1.shared.slowdown-30.r1"), ("figure", "slowdown")
    assert edited.stale() == {cell, drawn, *priced_jobs}
    edited.run("--cores", "2", "all")

    def change(**keys):
        reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(keys))

    change(percent_of_peak=30)  # the default
    assert edited.stale() == set()
    change(percent_of_peak=40)
    assert edited.stale() == {("measure", "cpu1.shared.slowdown-40.r1"), drawn, *priced_jobs}
    change(percent_of_peak=30, rounds=4)
    assert edited.stale() == {cell, drawn, *priced_jobs}


def test_a_dedicated_peak_found_again_moves_rates_that_are_shares_of_it(edited, downstream):
    """Absolute rates do not depend on the dedicated peak."""
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
    """Add bursts to the shared scenario, and run the study until no job is left."""
    replay = {"kind": "replay", "process": "mmpp", "rates_rps": [5], **settings}
    reconfigured(workflow, lambda s: s["scenarios"][0]["experiments"].append(replay))
    workflow.run("--cores", "2", "all")
    assert workflow.stale() == set()


def test_bursts_asked_for_and_longer_ones(edited, priced_jobs):
    replay = {"kind": "replay", "process": "mmpp", "rates_rps": [5]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(replay))
    assert edited.stale() == REPLAYED | priced_jobs
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(burst_s=3))
    assert edited.stale() == set()  # the default
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(burst_s=5))
    assert edited.stale() == REPLAYED | priced_jobs


def test_rates_of_bursts_that_follow_the_peaks(edited, downstream):
    with_replay(edited)
    edited.append("scripts/perseus/peak/search.py", CODE)
    drawn = {("figure", "replay")}
    assert edited.stale() == ALL_CELLS | drawn | downstream  # not the bursts at fixed rates
    edited.accept()
    share = {"kind": "replay", "process": "mmpp", "percents_of_peak": [30]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].__setitem__(-1, share))
    edited.accept()
    edited.append("scripts/perseus/peak/search.py", CODE)
    assert edited.stale() == ALL_CELLS | REPLAYED | downstream


def test_the_file_of_a_trace_that_is_replayed(edited, priced_jobs):
    for name in ("a.csv", "b.csv"):
        (edited.root / name).write_text("".join(f"{second}\n" for second in range(200)))
    traces = {"process": "trace", "traces": ["a.csv", "b.csv"], "name": "mmpp"}
    with_replay(edited, **traces)
    (edited.root / "a.csv").touch()
    assert edited.stale() == set()
    edited.append("b.csv", "201\n")
    assert edited.stale() == REPLAYED | priced_jobs


def test_code_of_the_arrivals_of_bursts(edited, priced_jobs):
    with_replay(edited)
    edited.append("scripts/perseus/traffic/mmpp.py", CODE)
    assert edited.stale() == REPLAYED | priced_jobs


def test_a_soak_added_and_made_longer(edited, priced_jobs):
    """The rates of a soak are shares of the dedicated peaks, which are measured already."""
    soak = {"kind": "soak", "percents_of_peak": [40, 30]}
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"].append(soak))
    cell, drawn = ("measure", "cpu1.shared.soak-40-30.r1"), ("figure", "soak")
    assert edited.stale() == {cell, drawn, *priced_jobs}
    edited.run("--cores", "2", "all")
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][-1].update(duration_s=7200))
    assert edited.stale() == {cell, drawn, *priced_jobs}
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


def test_an_experiment_of_each_kind_removed(edited, downstream, priced_jobs):
    """No cell is measured. If the removed experiment searched peaks, the job `predictions` runs
    again."""

    def ask(*others):
        first = {"kind": "peak", "mixes": [[3, 1]]}
        reconfigured(edited, lambda s: s["scenarios"][0].update(experiments=[first, *others]))
        return {("figure", each["kind"]) for each in others if each["kind"] != "frontier"}

    ask(*EVERY_KIND)
    edited.run("--cores", "2", "all")
    for i, removed in enumerate(EVERY_KIND):
        drawn = ask(*EVERY_KIND[:i], *EVERY_KIND[i + 1 :])
        searches = removed["kind"] in ("frontier", "background")
        after = downstream if searches else priced_jobs
        assert edited.stale() == drawn | after, removed["kind"]
    ask()
    assert edited.stale() == downstream


def test_a_mix_replaced(edited, downstream):
    reconfigured(edited, lambda s: s["scenarios"][0]["experiments"][0].update(mixes=[[1, 2]]))
    assert edited.stale() == {("measure", "cpu1.shared.mix-1-2.r1"), *downstream}
