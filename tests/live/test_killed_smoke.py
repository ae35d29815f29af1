"""The study smoke on real servers, which is killed at random times again and again."""

from __future__ import annotations

import shutil
from pathlib import Path

import killing
import pyarrow.parquet as pq
import pytest
from live.smoke_study import SMOKE, SNAKEMAKE, left_behind, snakemake
from workflow_files import copy_workflow

from perseus.results.check import check

pytestmark = pytest.mark.alone

TABLE = "results/smoke/tables/peaks.parquet"


def tables(root: Path) -> dict[str, object]:
    found = (root / "results/smoke/tables").glob("*.parquet")
    return {path.name: pq.read_table(path) for path in found}


def test_killed_at_random_the_study_ends_whole(tmp_path):
    (tmp_path / "smoke").mkdir()
    root = copy_workflow(tmp_path / "smoke")

    def is_whole() -> None:
        assert left_behind(root) == []
        assert list(root.rglob("*.partial")) == []
        check(root / "results/smoke/tables", {})
        again = tmp_path / "again"
        shutil.copytree(root, again, symlinks=True)
        made = snakemake(again, TABLE, "--forcerun", "tables")
        assert made.returncode == 0, made.stdout
        assert "Measuring cpu1" not in made.stdout
        assert tables(again) == tables(root) != {}
        shutil.rmtree(again)

    with killing.told(killing.seed()) as story:
        killer = killing.Killer(root, [*SNAKEMAKE, "all", *SMOKE], 40.0, is_whole, story)
        killer.kill_and_finish(killing.kills(3))
