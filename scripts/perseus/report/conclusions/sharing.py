"""Conclusion: savings of sharing on full servers, with their probability."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from perseus.peak.outcome import Outcome
from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.links import on_line, to_lines
from perseus.report.numbers import bounds, chance, listed, percent, significant
from perseus.report.shown_tables import machine_text, plain_words
from perseus.results.fleets.break_even import RELIABLE

QUICK = (
    "The preset quick gives a first answer. The preset standard gives a more reliable answer,"
    " because it measures longer."
)

MAX_MIXES = 4
"""A sentence states the sharing ratios of at most this many mixes besides the best mix."""

MATTERS = 0.12
"""A saving or an additional cost is relevant if it exceeds this share of the cost of dedicated
servers. The PERSEUS paper of LeMay, Li and Guo (2020) found savings of up to this share."""

Line: TypeAlias = pd.Series | Mapping[Hashable, Any]
"""A row with at least the columns `models` and `weights` of the table peaks."""


def conclusions(tables: Tables) -> list[Conclusion]:
    """Return one conclusion for each scenario whose tenants are different models."""
    peaks = tables["peaks"]
    if len(peaks) and (peaks["preset"] == "smoke").all():
        return [_no_measurement("")]
    return list(of_scenarios(tables, copies=False))


def of_scenarios(tables: Tables, *, copies: bool) -> Iterator[Conclusion]:
    """Yield one conclusion for each scenario with at least two different models.

    If `copies` is true, yield instead one conclusion for each scenario whose tenants are copies of
    one model.
    """
    peaks, savings = tables["peaks"], tables["savings"]
    smoke, which = set(peaks["scenario"][peaks["preset"] == "smoke"]), _which(savings)
    where = _where(savings, which)
    for scenario, part in savings.groupby("scenario", sort=False):
        if (len(_counted(part)) == 1) == copies:
            if scenario in smoke:
                yield _no_measurement(f" for {scenario}")
            else:
                yield _sharing(part, tables, where[str(scenario)], which[str(scenario)])


def _counted(savings: pd.DataFrame) -> Counter[str]:
    """Return the models of a scenario, each with its number of tenants."""
    return Counter(str(savings["models"].iloc[0]).split(" + "))


def _who(savings: pd.DataFrame) -> str:
    return _named(_counted(savings).elements())


def _named(models: Iterable[str]) -> str:
    """Return the names of models as text, for example "a, b and 2 copies of c"."""
    counted = sorted(Counter(models).items(), key=lambda model: model[1])
    return listed([f"{n} copies of {name}" if n > 1 else name for name, n in counted])


def _which(savings: pd.DataFrame) -> dict[str, str]:
    """Map each scenario to a text with its name, such as " (as in cpu1.shared)". The text is empty
    if no other scenario has the same models on the same server."""
    rows = savings.drop_duplicates("scenario")
    several = rows.duplicated(["models", "server"], keep=False)
    pairs = zip(rows["scenario"], several, strict=True)
    return {str(name): f" (as in {name})" if is_one else "" for name, is_one in pairs}


def _where(savings: pd.DataFrame, which: Mapping[str, str]) -> dict[str, str]:
    """Map each scenario to a text about its servers, such as "full cpu1 servers".

    If another scenario has the same models on the same server, the text also names the scenario.
    Otherwise, the text names the server if another scenario has the same models on another server.
    """
    rows = savings.drop_duplicates("scenario")
    found = {}
    for name, server, models in zip(rows["scenario"], rows["server"], rows["models"], strict=True):
        others = (rows["models"] == models).sum() - 1
        of_server = f" {server}" if others and not which[name] else ""
        found[str(name)] = f"full{of_server} servers{which[name]}"
    return found


def _no_measurement(of: str) -> Conclusion:
    text = f"No result{of}: the preset smoke only shows that Perseus works"
    return Conclusion("unknown", text, ("For a result, use the preset quick or standard.",))


def _sharing(savings: pd.DataFrame, tables: Tables, where: str, which: str) -> Conclusion:
    first, peaks = savings.iloc[0], tables["peaks"]
    who = _who(savings)
    known = savings[savings["saving"].notna()]
    if known.empty:
        reasons = dict.fromkeys(f"{row['mix']}: {row['reason']}" for _, row in savings.iterrows())
        lines = to_lines(peaks[peaks["scenario"] == first["scenario"]])
        if _is_infeasible(savings, tables["tenants"]):
            why = "no measured mix can be served within every SLA"
            headline = f"{who} should not share a {first['server']} server{which}: {why}"
            return Conclusion("no", headline, tuple(reasons), lines, rank=-math.inf)
        headline = _without_saving(who, which, savings, tables)
        return Conclusion("unknown", headline, tuple(reasons), lines)
    best = _best(known)
    kind = _kind(best, known)
    low, high = _ends(best)
    saves = f"{percent(best['saving'])} ({bounds(low, high, percent)})"
    costs = f"the best mix costs {percent(-best['saving'])} more ({bounds(-high, -low, percent)})"
    headline = {
        "yes": f"On {where}, {who} should share: sharing saves about {saves}",
        "perhaps": f"On {where}, {who} would probably gain from sharing",
        "no": f"On {where}, {who} should not share: {_dearer(len(known), len(savings))}; {costs}",
        "unclear": f"The data do not show whether {who} should share on {where}",
    }[kind]
    if kind == "unclear" and (limits := at_most(known)):
        headline = f"On {where}, sharing {who} {limits}"
    elif kind == "unclear" and high >= 0 and np.isfinite([low, high]).any():
        headline += f": the saving is {bounds(low, high, percent)}"
    used = _used(best, tables)
    if len(known) < len(savings):
        headline += f" (no estimate for {', '.join(savings[savings['saving'].isna()]['mix'])})"
    once = used[used["repeats_used"] < 2]
    if len(once) and kind != "unclear":
        of = "each" if len(once) == len(used) else f"of {listed(list(once['mix']))}"
        headline += f" (one run {of})"
    evidence = (*_evidence(best, kind, known, tables["costs"]), *_without_result(savings))
    sentences = (*evidence, *_caveats(used))
    return Conclusion(kind, headline, sentences, to_lines(used), rank=float(best["saving"]))


def _is_infeasible(savings: pd.DataFrame, tenants: pd.DataFrame) -> bool:
    """Return whether the server misses the SLAs in all repeats of all mixes of a scenario. The
    result is false if a repeat was not measured, since this repeat might meet the SLAs."""
    repeats = tenants[tenants["scenario"] == savings["scenario"].iloc[0]]
    return all((rows["verdict"] == Outcome.INFEASIBLE).all() for rows in (savings, repeats))


def _without_saving(who: str, which: str, savings: pd.DataFrame, tables: Tables) -> str:
    """Return the headline for a scenario with unknown savings.

    If a rate of the shared server is known, the headline states the highest known rate. If no rate
    is known, the headline states the verdict of each mix, and which load lines to measure again.
    """
    first, peaks = savings.iloc[0], tables["peaks"]
    server = f"{first['server']} server{which}"
    lines = peaks[peaks["scenario"] == first["scenario"]]
    for rate, about in (("estimate_rps", "about"), ("certified_rps", "at least")):
        if lines[rate].notna().any():
            most = _most(lines, rate)
            of = _named(_loaded_models(most))
            reached = f"{about} {significant(most[rate])} requests/s of {of} together"
            return f"One {server} carries {reached}; this study does not show the saving of sharing"
    ended = ", ".join(
        f"{row['mix']} ({plain_words(row['verdict'])})" for _, row in savings.iterrows()
    )
    again = list(dict.fromkeys(_worth_again(savings, tables)))
    then = f"; to measure {listed(again)} again, run `make again`" if again else ""
    return f"For {who} together on one {server}, no rate was certified: {ended}{then}"


def _most(lines: pd.DataFrame, rate: str) -> pd.Series:
    """Return the load line on which the most tenants have load. If there are several such load
    lines, return the load line with the highest `rate`."""
    known = lines[lines[rate].notna()]
    loaded_tenants = [len(_loaded_models(row)) for _, row in known.iterrows()]
    return known.assign(tenants=loaded_tenants).sort_values(["tenants", rate]).iloc[-1]


def _worth_again(savings: pd.DataFrame, tables: Tables) -> Iterator[str]:
    """Yield the names of the load lines that have no estimate because of a temporary failure. The
    user should measure these load lines again."""
    for _, saving in savings.iterrows():
        used = _used(saving, tables)
        for _, row in used[used["estimate_rps"].isna()].iterrows():
            if Outcome(row["verdict"]).is_temporary:
                yield str(row["mix"])


def _dearer(known: int, mixes: int) -> str:
    if known == mixes:
        return "every measured mix costs more than dedicated servers"
    have = (
        "has an estimate, and this mix costs"
        if known == 1
        else "have an estimate, and these mixes cost"
    )
    return f"only {known} of {mixes} mixes {have} more than dedicated servers"


def _best(known: pd.DataFrame) -> pd.Series:
    """Return the row of the mix with the largest significant saving. If no saving is significant,
    return the row of the mix with the largest saving."""
    for low in ("ci_simultaneous_low", "ci_low"):
        if (known[low] > 0).any():
            known = known[known[low] > 0]
            break
    return known.sort_values("saving").iloc[-1]


def _kind(best: pd.Series, known: pd.DataFrame) -> str:
    if best["ci_simultaneous_low"] > 0:
        return "yes"
    if best["ci_low"] > 0:
        return "perhaps"
    return "no" if (known["ci_simultaneous_high"] < 0).all() else "unclear"


def at_most(known: pd.DataFrame) -> str:
    """Return the largest possible saving and the largest possible additional cost as text.

    The text is empty if the interval of the saving does not contain 0. The text is also empty if
    both ends of the interval are further from 0 than MATTERS, because such an interval is too wide
    to be a result.
    """
    low = float(known.sort_values("saving").iloc[-1]["ci_simultaneous_low"])
    high = float(known["ci_simultaneous_high"].max())
    if not (low <= 0 <= high) or (low < -MATTERS and high > MATTERS):
        return ""
    saves = f"saves at most {percent(high)}" if high < 1 else "may save"
    costs = f"costs at most {percent(-low)} more" if np.isfinite(low) else "may cost more"
    return f"{saves} and, in the best mix, {costs}"


def _ends(saving: pd.Series) -> tuple[float, float]:
    """Return both ends of the interval of a saving, corrected for the choice among all mixes.

    An upper end of 1 becomes infinity, so that texts leave out this end: no saving exceeds 1.
    """
    low, high = saving["ci_simultaneous_low"], saving["ci_simultaneous_high"]
    return float(low), np.inf if high >= 1 else float(high)


def _evidence(
    best: pd.Series, kind: str, known: pd.DataFrame, costs: pd.DataFrame
) -> Iterator[str]:
    low, high = _ends(best)
    if best["saving"] >= 0:
        effect = f"sharing saves {percent(best['saving'])}"
        ends = bounds(low, high, percent)
    else:
        effect = f"sharing costs {percent(-best['saving'])} more"
        ends = bounds(-high, -low, percent)
    compared = best["lines_compared"]
    chosen = f", corrected for the choice among {compared:.0f} mixes" if compared > 1 else ""
    sure = best["probability_of_saving"]
    probability = "" if pd.isna(sure) else f"; probability of a saving {chance(sure)}"
    yield (
        f"One shared {best['server']} server ({best['mix']}) carries {best['sharing_ratio']:.2f}"
        f" times the load that dedicated servers carry for the same money: {effect} (95 % interval"
        f" {ends}{chosen}{probability})."
    )
    if compared > 1:
        yield from _other_mixes(best, known)
    if pd.notna(best["noise_floor"]):
        below = abs(best["saving"]) < best["noise_floor"]
        yield (
            "On this host, two runs of the same cell on restarted servers may differ by"
            f" {percent(best['noise_floor'])} (noise floor)"
            f"{', so the effect of sharing may be noise' if below else ''}."
        )
    if kind == "unclear":
        contains = (known["ci_simultaneous_low"] <= 0) & (known["ci_simultaneous_high"] >= 0)
        of = "" if high >= 0 else f" of {listed(list(known[contains]['mix']))}"
        yield f"The interval of the saving{of} contains 0, {_doubt(sure if high >= 0 else np.nan)}."
    yield from _money(best, costs)


def _doubt(probability: float) -> str:
    """Return the end of a sentence about an interval that contains 0. The end says whether a saving
    is likely."""
    if probability < 1 - RELIABLE:
        return "but a saving is unlikely"
    if probability > RELIABLE:
        return "but a saving is likely"
    return "so neither a saving nor additional cost is certain"


def _other_mixes(best: pd.Series, known: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence with the sharing ratios of all mixes but the best mix. If intervals of these
    mixes overlap with the interval of the best mix, yield a second sentence with these mixes."""
    others = known[(known["load_line"] != best["load_line"]) & known["sharing_ratio"].notna()]
    others = others.sort_values("sharing_ratio", ascending=False)
    each = [f"{row['sharing_ratio']:.2f} ({row['mix']})" for _, row in others.iterrows()]
    if not each:
        return
    more = f", and {len(each) - MAX_MIXES} more with a lower ratio" if len(each) > MAX_MIXES else ""
    yield f"Sharing ratios of the other mixes: {', '.join(each[:MAX_MIXES])}{more}."
    overlap = others[(others["ci_high"] >= best["ci_low"]) & (others["ci_low"] <= best["ci_high"])]
    if len(overlap):
        of = "all of these mixes" if len(overlap) == len(others) else listed(list(overlap["mix"]))
        yield (
            f"The intervals of {of} overlap with the interval of the best mix: the data do not show"
            " which mix is best."
        )


def _without_result(savings: pd.DataFrame) -> Iterator[str]:
    missing = savings[savings["saving"].isna()]
    if len(missing):
        each = (f"{row['mix']} ({row['reason']})" for _, row in missing.iterrows())
        yield f"There is no estimate for {'; '.join(each)}."


def _money(best: pd.Series, costs: pd.DataFrame) -> Iterator[str]:
    for _, row in costs[on_line(costs, best)].iterrows():
        yield (
            "A million inferences in the proportion of this mix cost"
            f" {significant(row['usd_per_million_inferences'])} USD on shared servers"
            f" ({usd_bounds(row)}) and"
            f" {significant(row['dedicated_usd_per_million'])} USD on dedicated servers"
            f" ({machine_text(row)} in {row['region']}, {pricing(row)})."
        )


def pricing(row: pd.Series) -> str:
    return str(row["pricing"]).replace("_", "-")


def usd_bounds(row: pd.Series) -> str:
    return bounds(row["ci_low_usd"] or -math.inf, row["ci_high_usd"], significant)


def _used(best: pd.Series, tables: Tables) -> pd.DataFrame:
    """Return the rows of the table peaks behind a saving: the shared peak, and the dedicated peaks
    of its tenants."""
    peaks, tenants = tables["peaks"], tables["tenants"]
    names = _with_load(best, list(dict.fromkeys(tenants[on_line(tenants, best)]["tenant"])))
    alone = tenants[(tenants["kind"] == "dedicated") & tenants["tenant"].isin(names)]
    with_it = (peaks["server"] == best["server"]) & (peaks["preset"] == best["preset"])
    of_alone = (peaks["kind"] == "dedicated") & peaks["scenario"].isin(alone["scenario"])
    return peaks[on_line(peaks, best) | (with_it & of_alone)]


def loaded(row: Line) -> set[str]:
    """Return the models with load on a load line."""
    return set(_loaded_models(row))


def _loaded_models(row: Line) -> list[str]:
    """Return the models of a load line, one for each tenant with load."""
    return _with_load(row, row["models"].split(" + "))


def _with_load(row: Line, of_tenants: Sequence[str]) -> list[str]:
    weights = row["weights"].split(" : ") if row["weights"] else ["1"] * len(of_tenants)
    return [of for of, weight in zip(of_tenants, weights, strict=True) if weight != "0"]


def _caveats(used: pd.DataFrame) -> Iterator[str]:
    for _, row in used[used["repeats_used"] < used["repeats"]].iterrows():
        yield (
            f"Only {row['repeats_used']} of {row['repeats']} repeats of {row['mix']} found a limit"
            f" ({row['reason']}). The estimate is the mean over the repeats that found a limit."
            " The other repeats could have changed the estimate, so at least one end of its"
            " interval is open."
        )
    for _, row in used[used["verdict"] == "unsteady"].iterrows():
        yield f"The speed of the server changed while {row['mix']} was measured ({row['reason']})."
    yield from beside_others(used)
    yield from not_certified(used)
    once = used[used["repeats_used"] < 2]
    if len(once):
        of = "" if len(once) == len(used) else f" of {listed(list(once['mix']))}"
        yield (
            f"Each estimate{of} comes from one run: its interval includes the variation within the"
            " run, but not the variation between starts of the server."
        )
    if "quick" in set(used["preset"]):
        yield QUICK


def beside_others(used: pd.DataFrame) -> Iterator[str]:
    """Yield sentences about load lines whose estimate may be too low, because other processes used
    the server during a valid window."""
    for _, row in used.iterrows():
        if row["other_load"]:
            yield (
                f"The estimate of {row['mix']} may be too low: in a valid window,"
                f" {row['other_load']}."
            )


def not_certified(used: pd.DataFrame) -> Iterator[str]:
    """Yield sentences about load lines without a certified rate."""
    predicted_record = used["verdict"] == "predicted"
    if predicted_record.any():
        yield f"Predicted, not measured: {', '.join(used[predicted_record]['mix'])}."
    unsure = used[used["certified_rps"].isna() & ~predicted_record]
    if len(unsure):
        often = " in every repeat" if (unsure["repeats"] > 1).any() else ""
        yield (
            f"No tested rate of {listed(list(unsure['mix']))} was certified{often}, but the"
            " estimates are valid."
        )
