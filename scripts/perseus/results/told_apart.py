"""Load lines that have the same words on one server, as scenarios of the same models have: they are
told apart by the names of their scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Set

import pandas as pd


def told_apart(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables, by name, with the scenario behind a `mix` that is not the only such one."""
    same = in_several_scenarios(tables["peaks"]) if "peaks" in tables else set()
    return {name: with_scenarios(frame, same) for name, frame in tables.items()}


def in_several_scenarios(lines: pd.DataFrame) -> Set[str]:
    """What load lines of several scenarios of a server are called, each a row."""
    each = lines.drop_duplicates(["server", "scenario", "mix"])
    return frozenset(each[each.duplicated(["server", "mix"])]["mix"])


def with_scenarios(frame: pd.DataFrame, mixes: Set[str]) -> pd.DataFrame:
    """The table with the scenario behind these mixes, where its rows are load lines."""
    if not mixes or not {"server", "scenario", "load_line", "mix"} <= set(frame):
        return frame
    if "grid" in frame:  # whose rows are settings of one question
        return frame
    named = [
        with_scenario(mix, server, scenario) if mix in mixes else mix
        for mix, server, scenario in zip(
            frame["mix"], frame["server"], frame["scenario"], strict=True
        )
    ]
    return frame.assign(mix=named)


def with_scenario(words: str, server: str, scenario: str) -> str:
    """The words of a load line with its scenario's name, unless they end with it."""
    name = f" ({scenario.removeprefix(f'{server}.')})"
    return words if words.endswith(name) else words + name
