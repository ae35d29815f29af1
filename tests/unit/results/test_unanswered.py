"""What the end of a run says of cells without an answer; of whole runs: tests/dag/test_again.py."""

import json

from perseus.results.unanswered import last_words, worth_again

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
    said = list(last_words(records, []))
    assert said[:4] == [
        "1 of 3 cells have no answer:",
        "  warming: unsteady: why warming",
        "1 of 3 cells have an estimate to be doubted:",
        "  wandered: unsteady: why wandered",
    ]
    # Both may be better another time.
    assert worth_again(records, []) == records[1:]
    assert str(records[1]) in said[-1] and str(records[2]) in said[-1]


def test_a_run_whose_cells_have_answers_says_nothing(tmp_path):
    assert list(last_words([written(tmp_path, "fast", "ok", **LIMIT)], [])) == []
