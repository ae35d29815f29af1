"""Whether SLAs are kept when arrivals come as they were asked for, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.repeated import reasons, runs, tenants_of, who
from perseus.report.links import to_table
from perseus.report.numbers import bounds, listed, significant

ARRIVALS = {
    "poisson": "Poisson arrivals",
    "gamma": "gamma arrivals",
    "mmpp": "bursts",
    "trace": "the trace",
}


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each scenario to which arrivals were replayed."""
    for rows in runs(tables["replay"]):
        yield _answer(rows)


def _answer(rows: pd.DataFrame) -> Answer:
    server, behind = rows["server"].iloc[0], (to_table("replay"),)
    shared, alone = (rows[rows["phase"] == phase] for phase in ("shared", "alone"))
    under = f"under {ARRIVALS[rows['process'].iloc[0]]}"
    on = f"on {server} {who(shared)}"
    said = tuple(_of_tenant(shared, alone, name) for name in _known(shared))
    without = reasons(rows[rows["attained"].isna()])
    missed = shared[shared["verdict"] == "sla_missed"]
    if len(missed):
        names = listed(tenants_of(missed))
        its = "misses its SLA" if missed["tenant"].nunique() == 1 else "miss their SLAs"
        headline = f"Of what is served together on {server}, {names} {its} {under}"
        return Answer("no", headline, (*said, *without), behind)
    if (shared["verdict"] == "ok").all():
        keep = "keeps its SLA" if shared["tenant"].nunique() == 1 else "keep their SLAs together"
        return Answer("yes", f"{on[0].upper()}{on[1:]} {keep} {under}", (*said, *without), behind)
    headline = f"Whether {on} would keep the SLA {under} is not known"
    return Answer("unknown", headline, (*said, *without), behind)


def _known(shared: pd.DataFrame) -> list[str]:
    return tenants_of(shared[shared["attained"].notna()])


def _of_tenant(shared: pd.DataFrame, alone: pd.DataFrame, name: str) -> str:
    """Of the repeat with the least attainment."""
    of = shared[(shared["tenant"] == name) & shared["attained"].notna()]
    row = of.sort_values("attained").iloc[0]
    ends = bounds(row["attained_low"], row["attained_high"], _share)
    parts = [
        f"{name}, {significant(row['offered_rps'])} requests/s: {_share(row['attained'])} within"
        f" {row['sla_ms']:g} ms ({ends}), where the SLA asks for {row['sla_percentile']:g} %"
    ]
    if len(of) > 1:
        parts.append(f"in the worst of {len(of)} repeats")
    without = alone[alone["tenant"] == name]["attained"].min()
    if np.isfinite(without):
        parts.append(f"{_share(without)} alone on the server")
    if pd.notna(row["worst_minute_attained"]) and row["duration_s"] > 60:
        parts.append(f"{_share(row['worst_minute_attained'])} in the worst minute")
    if np.isposinf(row["worst_recovery_s"]):
        parts.append("and after a burst not recovered when the window ended")
    elif pd.notna(row["worst_recovery_s"]):
        parts.append(f"recovered at most {significant(row['worst_recovery_s'])} s after a burst")
    return "; ".join(parts) + "."


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"
