"""The plan of a large study: each job's files and slice are found without searching all cells."""

import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from perseus.study import plan
from perseus.study.config import load_study
from perseus.study.entities import LoadLineSpec
from perseus.study.presets import PRESETS

ROOT = Path(__file__).parents[3]
NAMES = [f"resnet{n}" for n in (18, 34, 50, 101, 152)] + [f"vgg{n}" for n in (11, 13, 16, 19)]
NAMES += [f"densenet{n}" for n in (121, 161, 169)]


def large_study():
    mixes = [[1, n] for n in range(1, 16)]
    return load_study(
        {
            "study": "large",
            "models": [{"name": name, "sla": {"latency_ms": 100}} for name in NAMES],
            "servers": [
                {
                    "name": "cpu1",
                    "cores": 1,
                    "price": {"instance": "n1-standard-1", "region": "us-central1"},
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
        ROOT,
    )


def test_ten_thousand_cells_are_planned_in_seconds():
    study = large_study()
    ids = [cell.id for cell in plan.cells(study)]
    assert len(set(ids)) == len(ids) == 12 * 10 + 66 * 15 * 10
    start_s = time.monotonic()
    for cell_id in ids:
        cell = plan.cell(study, cell_id)
        plan.measure_slice(study, cell)
        plan.repository_files(study, cell.scenario)
        assert len(plan.dedicated_cells(study, cell)) == (
            20 if len(cell.scenario.tenants) == 2 else 0
        )
    assert time.monotonic() - start_s < 20


def test_every_file_of_a_cell_lies_in_its_own_folder():
    study = large_study()
    cells = plan.cells(study)[:50]
    folders = {Path(file).parent for cell in cells for file in plan.raw_files(study, cell)}
    assert len(folders) == 50


def test_what_measuring_takes_is_known_beforehand():
    study = large_study()
    about_s, most_s = plan.load_s(study)
    alone = replace(study, scenarios=study.scenarios[:1], repeats=1)
    one_s, one_most_s = plan.load_s(alone)
    assert 40 < one_s < 90 and one_s < one_most_s < 20 * one_s
    assert 60 < about_s / len(plan.cells(study)) < 150 and about_s < most_s
    loops = LoadLineSpec.concurrency([1, 4, 16])
    loop_s = PRESETS["quick"].settings.root.max_s
    both = replace(alone.scenarios[0], lines=(*alone.scenarios[0].lines, loops))
    assert plan.load_s(replace(alone, scenarios=(both,)))[0] - one_s > 3 * loop_s
