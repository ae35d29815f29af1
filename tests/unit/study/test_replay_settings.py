"""Tests of replay settings: their effect on a cell, and refusals before any job."""

from __future__ import annotations

import re

import pytest

from perseus.study.experiments.replay import Bursts, Run, Settings, of_tenant

TENANTS = ("a", "b")
F1, F2 = ({"file": "azure.csv", "where": {"HashFunction": name}} for name in ("f1", "f2"))


def run(**settings) -> Run:
    (found,) = Settings(kind="replay", **settings).runs()
    return found


def problems(folder, **settings):
    asked = Settings(kind="replay", **settings)
    found = [*asked.problems(TENANTS), *asked.file_problems(TENANTS, folder)]
    return [f"{'.'.join(map(str, place))}: {text}" for place, text in found]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "times.csv").write_text("".join(f"{second}\n" for second in range(300)))
    head = "HashOwner,HashApp,HashFunction,Trigger,1,2,3,4"
    (tmp_path / "azure.csv").write_text(f"{head}\no,a,f1,http,60,0,0,60\no,a,f2,http,0,0,9,0\n")
    (tmp_path / "ms.csv").write_text("".join(f"{1000 * second}\n" for second in range(600)))
    (tmp_path / "busy.csv").write_text(f"{head}\no,a,f1,http,6000000,6000000,6000000,6000000\n")
    return tmp_path


def test_defaults_that_are_spelt_out_make_the_same_run():
    assert run(process="gamma", rates_rps=(5.0,)) == run(
        process="gamma", name="gamma", rates_rps=(5.0,), cv=4.0, duration_s=120.0
    )
    assert run(process="mmpp", rates_rps=(5.0,)).bursts == Bursts(
        burst_factor=5, burst_s=3, burst_share=0.1
    )
    assert run(process="poisson", rates_rps=(5.0,)).cv == 1.0


def test_a_run_is_named_after_its_process_or_as_it_is_told():
    assert run(process="mmpp", rates_rps=(5.0,)).name == "replay-mmpp"
    assert run(process="mmpp", rates_rps=(5.0,), name="long").name == "replay-long"


def test_only_percents_of_a_peak_need_one():
    assert run(process="mmpp", percents_of_peak=(30,)).needs_dedicated_peaks
    assert not run(process="mmpp", rates_rps=(5.0,)).needs_dedicated_peaks
    assert not run(process="trace", traces=("times.csv",)).needs_dedicated_peaks


def test_the_files_of_a_run_are_those_of_its_traces_each_once():
    assert run(process="trace", traces=("b.csv", "a.csv", "b.csv")).files == ("b.csv", "a.csv")
    assert run(process="mmpp", rates_rps=(5.0,)).files == ()


def test_a_run_of_a_trace_survives_being_made_plain():
    of_gpt4 = {"file": "t.csv", "where": {"Model": "GPT-4"}}
    asked = run(process="trace", traces=("t.csv", of_gpt4))
    plain, selected = asked.trace.sources
    assert (plain.file, plain.where) == ("t.csv", {})
    assert selected.where == {"Model": "GPT-4"} and asked.trace.begins_s == (0.0,)
    assert Run.model_validate(asked.plain()) == asked


def test_lists_have_an_entry_for_each_tenant_or_one_for_all():
    assert [of_tenant(("x",), i) for i in range(3)] == ["x", "x", "x"]
    assert [of_tenant(("x", "y"), i) for i in range(2)] == ["x", "y"]


def test_phases_are_all_tenants_together_and_each_alone():
    asked = run(process="gamma", rates_rps=(5.0,))
    assert asked.phases(2) == [("shared", (0, 1)), ("alone", (0,)), ("alone", (1,))]
    assert asked.phases(1) == [("alone", (0,))]


GOOD = [
    {"process": "gamma", "cv": 2.0, "rates_rps": (3.0, 4.0)},
    {"process": "mmpp", "burst_factor": 3.0, "percents_of_peak": (30,)},
    {"process": "trace", "traces": ("times.csv",), "begins_s": (0.0, 100.0)},
    {"process": "trace", "traces": (F1, F2), "duration_s": 240.0},
    {"process": "trace", "traces": ("busy.csv",), "rates_rps": (9.0,)},
]  # fmt: skip


@pytest.mark.parametrize("settings", GOOD, ids=repr)
def test_what_can_be_replayed_is_accepted(settings, folder):
    assert problems(folder, **settings) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"process": "gamma"}, r"^: needs mean rates: write `rates_rps:` or `percents_of_peak:`"),
        (
            {"process": "gamma", "rates_rps": (1.0,), "percents_of_peak": (30,)},
            r"^: has both `rates_rps:` and `percents_of_peak:`",
        ),
        ({"process": "mmpp", "cv": 2.0}, r"cv: applies only to `process: gamma`, but `process` is"
                                         r" 'mmpp'"),
        ({"process": "gamma", "burst_s": 2.0}, r"burst_s: applies only to `process: mmpp`"),
        ({"process": "gamma", "traces": ("x",)}, r"traces: applies only to `process: trace`"),
        ({"process": "trace"}, r"traces: is missing \(files of recorded arrivals\)"),
        (
            {"process": "gamma", "rates_rps": (1.0, 2.0, 3.0)},
            r"rates_rps: has 3 entries for 2 tenants \(write one entry for each",
        ),
        (
            {"process": "trace", "traces": ("times.csv", "none.csv")},
            r"traces\.1: there is no trace file 'none\.csv'",
        ),
        (
            {"process": "trace", "traces": ("ms.csv",)},
            r"ms\.csv does not state the unit of its times. Depending on the unit, the recording"
            r" lasts 6\.93 days",
        ),
        (
            {"process": "trace", "traces": ("times.csv",), "begins_s": (0.0, 250.0)},
            r"times\.csv has only 50 s after second 250, at `time_scale` 1, but `duration_s` is",
        ),
        (
            {"process": "trace", "traces": ("times.csv",), "time_scale": 0.1},
            r"has only 30 s after second 0, at `time_scale` 0\.1, but `duration_s` is 120",
        ),
        (
            {"process": "trace", "traces": (F1, F2)},
            r"azure\.csv \(HashFunction f2\) has no requests between second 0 and second 120 \(",
        ),
        (
            {"process": "trace", "traces": ("busy.csv",)},
            r"busy\.csv has 1e\+05 requests/s, at `time_scale` 1, but the client can send",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_refused(settings, expected, folder):
    found = problems(folder, **settings)
    assert any(re.search(expected, problem) for problem in found), found


def test_all_problems_of_all_files_are_told_at_once(folder):
    (folder / "bad.csv").write_text("1\nsoon\n2\n")
    found = problems(folder, process="trace", traces=("none.csv", "bad.csv"), cv=2.0)
    assert len(found) == 3 and found[0].startswith("cv: ")
    assert "none.csv" in found[1] and "row 2: 'soon' is not a time" in found[2]


def test_one_problem_of_a_file_that_all_tenants_replay_is_told_once(folder):
    assert len(problems(folder, process="trace", traces=("none.csv",))) == 1


def test_lists_of_a_wrong_length_do_not_keep_files_from_being_looked_at(folder):
    found = problems(folder, process="trace", traces=("none.csv",), begins_s=(0.0, 1.0, 2.0))
    assert any("3 entries" in each for each in found) and any("none.csv" in each for each in found)
