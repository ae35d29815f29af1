"""Conclusion: the fastest runtime of each model, among runtimes with equal numeric precision."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.links import to_table
from perseus.report.numbers import bounds, listed, significant
from perseus.results.tables.recommendations import SURE
from perseus.study.runtimes import RUNTIMES


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each model with several runtimes or precisions. The function ignores
    results of the preset smoke."""
    runtimes = tables["runtimes"][tables["runtimes"]["preset"] != "smoke"]
    for _, rows in runtimes.groupby(["question", "preset", "device", "cores"], sort=False):
        yield _conclusion(rows)


def _conclusion(rows: pd.DataFrame) -> Conclusion:
    by_precision = [part for _, part in rows.groupby("precision", sort=False)]
    compared = [part for part in by_precision if part["rank"].notna().sum() > 1]
    kind, headline = _headline(str(rows["question"].iloc[0]), compared)
    sentences = (
        *map(_ranked, compared),
        *_other_precisions(rows[rows["fp32_ratio"].notna()]),
        *_otherwise(rows[rows["precision"] != rows["asked_precision"]]),
    )
    return Conclusion(kind, headline, sentences, (to_table("runtimes"),))


def _headline(model: str, compared: list[pd.DataFrame]) -> tuple[str, str]:
    """Return the kind and the headline of the conclusion."""
    if not compared:
        return "unknown", f"{model}: no two runtimes have an estimate at equal precision"
    found, is_sure = [], True
    for part in compared:
        best = part.sort_values("rank").iloc[0]
        sure = best["probability_fastest"] >= SURE
        close = "" if sure else ", but another runtime may be faster"
        found.append(f"in {best['precision']} {_title(best)} is the fastest{close}")
        is_sure &= bool(sure)
    return "yes" if is_sure else "unclear", f"{model}: {'; '.join(found)}"


def _ranked(part: pd.DataFrame) -> str:
    best, *others = (row for _, row in part[part["rank"].notna()].sort_values("rank").iterrows())
    carried = [
        f"{_title(row)} {significant(row['rate_ratio'])} times as many"
        f" ({bounds(row['ratio_low'], row['ratio_high'], significant)})"
        for row in others
    ]
    return (
        f"In {best['precision']} {_title(best)} carries {significant(best['estimate_rps'])}"
        f" requests/s, {listed(carried)}."
    )


def _other_precisions(rows: pd.DataFrame) -> Iterator[str]:
    for _, row in rows.iterrows():
        error = row["relative_error"]
        lost = "" if pd.isna(error) else f", with a relative error of {significant(error)}"
        ends = bounds(row["fp32_ratio_low"], row["fp32_ratio_high"], significant)
        yield (
            f"{_title(row)} in {row['precision']} carries {significant(row['fp32_ratio'])} times"
            f" as many requests/s as the fastest runtime in fp32 ({ends}){lost}. The precision"
            " causes this difference, not the runtime."
        )


def _otherwise(rows: pd.DataFrame) -> Iterator[str]:
    for _, row in rows[rows["asked_precision"] != ""].iterrows():
        yield (
            f"{_title(row)} was configured for {row['asked_precision']} but computed in"
            f" {row['precision']}, so the report lists its results under {row['precision']}."
        )


def _title(row: pd.Series) -> str:
    known = RUNTIMES.get(row["runtime"])
    return known.title if known else str(row["runtime"])
