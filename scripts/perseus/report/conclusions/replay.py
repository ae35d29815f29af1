"""Conclusion: whether the server keeps the SLAs under bursty or recorded arrivals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.repeated import interval, reasons, runs, tenants_of, who
from perseus.report.links import to_table
from perseus.report.numbers import percent_below, significant

ARRIVALS = {
    "poisson": "Poisson arrivals",
    "gamma": "gamma arrivals",
    "mmpp": "bursts",
    "trace": "the trace",
}

JUDGED = ("ok", "sla_missed")
"""Verdicts that say whether the server keeps the SLA. All other verdicts say why the server has no
valid result."""


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each `replay` experiment, with all its repeats."""
    for on, rows in runs(tables["replay"]):
        yield _conclusion(on, rows)


def _conclusion(on: str, rows: pd.DataFrame) -> Conclusion:
    behind = (to_table("replay"),)
    shared, alone = (rows[rows["phase"] == phase] for phase in ("shared", "alone"))
    where = f"Together on {on},"
    if shared.empty:  # a replay of one tenant has only the phase `alone`
        shared, alone, where = alone, shared, f"On {on},"
    under = f"under {ARRIVALS[rows['process'].iloc[0]]}"
    judged = shared[shared["attained"].notna() | (shared["verdict"] != "ok")]
    idle = [name for name in tenants_of(shared) if name not in tenants_of(judged)]
    sentences = (
        *(_of_tenant(shared, alone, name) for name in _known(shared)),
        *(f"No request of {name} arrived." for name in idle),
        *reasons(rows[~rows["verdict"].isin(JUDGED)]),
    )
    missed = shared[shared["verdict"] == "sla_missed"]
    if len(missed):
        its = "misses its SLA" if missed["tenant"].nunique() == 1 else "miss their SLAs"
        return Conclusion("no", f"{where} {who(missed)} {its} {under}", sentences, behind)
    if len(judged) and (shared["verdict"] == "ok").all():
        its = "keeps its SLA" if judged["tenant"].nunique() == 1 else "keep their SLAs"
        return Conclusion("yes", f"{where} {who(judged)} {its} {under}", sentences, behind)
    headline = f"The data do not show whether the tenants on {on} keep their SLAs {under}"
    return Conclusion("unknown", headline, sentences, behind)


def _known(shared: pd.DataFrame) -> list[str]:
    return tenants_of(shared[shared["attained"].notna()])


def _of_tenant(shared: pd.DataFrame, alone: pd.DataFrame, name: str) -> str:
    """Return the sentence about a tenant. The sentence is about the valid repeat with the lowest
    share of requests within the SLA. If no repeat is valid, the sentence is about the repeat with
    the lowest share among all repeats."""
    of = shared[(shared["tenant"] == name) & shared["attained"].notna()]
    judged = of[of["verdict"].isin(JUDGED)]
    of = judged if len(judged) else of
    row = of.sort_values("attained").iloc[0]
    ends = interval(row["attained_low"], row["attained_high"], share_text)
    parts = [
        f"{name}, {significant(row['offered_rps'])} requests/s: {attained_text(row)} of the"
        f" requests got a response within {row['sla_ms']:g} ms{ends}, and the SLA requires"
        f" {row['sla_percentile']:g} %"
    ]
    if len(of) > 1:
        parts.append(f"in the worst of {len(of)} repeats")
    without = alone[(alone["tenant"] == name) & alone["verdict"].isin(JUDGED)]["attained"].min()
    if np.isfinite(without):
        parts.append(f"{share_text(without)} alone on the server")
    if pd.notna(row["worst_minute_attained"]) and row["duration_s"] > 60:
        parts.append(f"{share_text(row['worst_minute_attained'])} in the worst minute")
    if np.isposinf(row["worst_recovery_s"]):
        parts.append("no recovery from a burst before the window ended")
    elif pd.notna(row["worst_recovery_s"]):
        parts.append(f"longest recovery after a burst: {significant(row['worst_recovery_s'])} s")
    return "; ".join(parts) + "."


def attained_text(row: pd.Series) -> str:
    """Return the share of requests within the SLA as text. A share below the percentile of the SLA
    is never rounded up to this percentile, since the text would then say that the SLA holds."""
    attained, asked = row["attained"], row["sla_percentile"] / 100
    is_rounded_up = attained < asked <= round(attained, 3)
    return percent_below(attained, asked) if is_rounded_up else share_text(attained)


def share_text(share: float) -> str:
    return f"{100 * share:.1f} %"
