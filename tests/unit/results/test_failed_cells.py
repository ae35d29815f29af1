"""Tests of the message on failed cells at the end of a run. tests/dag tests whole runs."""

import json
from pathlib import Path

import pytest

from perseus.results.failed_cells import final_message, outputs_to_repeat

LIMIT = {"estimate_scale": 0.9, "posterior_scales": [0.8, 1.0]}


def written(folder, name, outcome, **more):
    path = folder / name / "record.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"outcome": outcome, "reason": f"why {name}", **more}))
    return path


def test_an_estimate_is_not_said_to_be_no_answer(tmp_path):
    records = [
        written(tmp_path, "fast", "ok", **LIMIT),
        written(tmp_path, "wandered", "unsteady", **LIMIT),
        written(tmp_path, "warming", "unsteady", estimate_scale=None, posterior_scales=[]),
    ]
    messages = list(final_message(records, []))
    assert messages[:4] == [
        "1 of 3 cells have no result:",
        "  warming: unsteady: why warming",
        "1 of 3 cells have a doubtful estimate:",
        "  wandered: unsteady: why wandered",
    ]
    # Both cells had a temporary failure, so another measurement may succeed.
    assert outputs_to_repeat(records, []) == [record.parent for record in records[1:]]
    assert f" {records[1].parent} {records[2].parent}" in messages[-1]


def test_what_certified_nothing_beside_others_may_another_time(tmp_path):
    others = {"other_load": "other processes used 32 % of the server's cores"}
    records = [
        written(tmp_path, "certified", "ok", **LIMIT, **others),
        written(tmp_path, "beside", "uncertified", **LIMIT, **others),
        written(tmp_path, "quiet", "uncertified", **LIMIT, others=""),
    ]
    assert list(final_message(records, []))[:2] == [
        "1 of 3 cells have a doubtful estimate:",
        f"  beside: uncertified: why beside; {others['other_load']}",
    ]
    assert outputs_to_repeat(records, []) == [records[1].parent]


@pytest.mark.parametrize(
    ("configfiles", "overrides", "what"),
    [
        ([], {}, "make again, or your command with"),
        (["my study.yaml"], {}, "your command with"),  # the Makefile splits at spaces
        (["config/studies/paper.yaml"], {}, "make again CONFIGFILE=config/studies/paper.yaml, or"),
        (["a.yaml", "/far/b.yaml"], {}, "make again 'CONFIGFILE=a.yaml /far/b.yaml', or"),
        (["a.yaml"], {"seed": 2}, "your command with"),  # a setting that `make` does not know
    ],
)
def test_what_to_do_is_of_the_study_that_ran(tmp_path, configfiles, overrides, what):
    records = [written(tmp_path, "dead", "failed")]
    asked = [Path(file).absolute() for file in configfiles]
    messages = list(final_message(records, [], asked, overrides))
    assert messages[-2].startswith(
        f"To measure these cells and ceilings again, and all cells that depend on them, run: {what}"
    )


def test_make_is_named_only_where_it_runs_the_same_jobs(tmp_path):
    """On a cluster, `make again` would measure on the login node."""
    messages = list(final_message([written(tmp_path, "dead", "failed")], [], has_make=False))
    assert messages[-2].endswith("run: your command with")


def test_a_run_whose_cells_have_answers_says_nothing(tmp_path):
    assert list(final_message([written(tmp_path, "fast", "ok", **LIMIT)], [])) == []
