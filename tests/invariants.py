"""What must hold of the results of every study, synthetic or measured.

python tests/invariants.py results/default      (with scripts/ on PYTHONPATH)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

LINE = ["scenario", "load_line"]


def check(results: Path) -> None:
    """Raises AssertionError, with the offending rows, when the tables of a study contradict."""
    frames = {}
    for name in ("peaks", "tenants", "costs", "savings"):
        frames[name] = pd.read_parquet(results / "tables" / f"{name}.parquet")
        _same_as_csv(frames[name], results / "tables" / f"{name}.csv")
    peaks, tenants, costs, savings = frames.values()
    _never(peaks, peaks["certified_rps"] >= peaks["first_failing_rps"], "certified rate fails")
    _never(peaks, (peaks["verdict"] == "ok") & peaks["certified_rps"].isna(), "ok without a rate")
    for table, value, low, high in (
        (peaks, "estimate_rps", "ci_low_rps", "ci_high_rps"),
        (costs, "usd_per_million_inferences", "ci_low_usd", "ci_high_usd"),
        (savings, "sharing_ratio", "sharing_ratio", "sharing_ratio"),
    ):
        _never(table, table[low] > table[high], f"{low} > {high}")
        _never(table, table[value] <= 0, f"{value} <= 0")
    _never(tenants, tenants["p50_ms"] > tenants["p95_ms"], "p50 > p95")
    _never(tenants, tenants["p95_ms"] > tenants["p99_ms"], "p95 > p99")
    _never(tenants, tenants["sla_percentile_ms"] > tenants["sla_ms"], "certified over its SLA")
    _never(savings, savings["saving"] >= 1, "nothing saves all")
    _never(savings, savings["ci_simultaneous_low"] > savings["ci_low"], "corrected is narrower")
    _rates_add_up(peaks, tenants)


def _never(table: pd.DataFrame, wrong: pd.Series, what: str) -> None:
    assert not wrong.any(), f"{what}:\n{table[wrong].T.to_string()}"


def _rates_add_up(peaks: pd.DataFrame, tenants: pd.DataFrame) -> None:
    """The rates of the tenants are those of the point."""
    cells = tenants.groupby([*LINE, "cell"], sort=False)[["rate_rps", "estimate_rps"]]
    totals = cells.sum(min_count=1).reset_index()
    for of_line, of_tenants, combine in (
        ("certified_rps", "rate_rps", "min"),
        ("estimate_rps", "estimate_rps", "mean"),
    ):
        total = totals.groupby(LINE, sort=False)[of_tenants].agg(combine)
        stated = peaks.set_index(LINE)[of_line]
        known = stated.notna()
        np.testing.assert_allclose(total[known[known].index], stated[known], rtol=1e-9)


def _same_as_csv(table: pd.DataFrame, path: Path) -> None:
    twin = pd.read_csv(path, keep_default_na=False, na_values=[""])
    assert list(twin) == list(table), path
    assert len(twin) == len(table), path
    for name in table:
        if pd.api.types.is_numeric_dtype(table[name]):
            twins = twin[name].astype(float)
            np.testing.assert_allclose(twins, table[name], rtol=1e-5, err_msg=f"{path}: {name}")
        else:
            assert (twin[name].fillna("") == table[name].fillna("")).all(), f"{path}: {name}"


if __name__ == "__main__":
    check(Path(sys.argv[1]))
