"""Add the scenario name to load lines that have the same text on one server."""

from __future__ import annotations

from collections.abc import Mapping, Set

import pandas as pd


def with_scenario_names(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables, by name, with the scenario after each ambiguous `mix`."""
    same = in_several_scenarios(tables["peaks"]) if "peaks" in tables else set()
    return {name: with_scenarios(frame, same) for name, frame in tables.items()}


def in_several_scenarios(lines: pd.DataFrame) -> Set[str]:
    """Return the texts of load lines that occur in several scenarios of a server."""
    each = lines.drop_duplicates(["server", "scenario", "mix"])
    return frozenset(each[each.duplicated(["server", "mix"])]["mix"])


def with_scenarios(frame: pd.DataFrame, mixes: Set[str]) -> pd.DataFrame:
    """Return the table with the scenario after these mixes, if its rows are load lines."""
    if not mixes or not {"server", "scenario", "load_line", "mix"} <= set(frame):
        return frame
    if "grid" in frame:  # its rows are settings of one question
        return frame
    named = [
        with_scenario(mix, server, scenario) if mix in mixes else mix
        for mix, server, scenario in zip(
            frame["mix"], frame["server"], frame["scenario"], strict=True
        )
    ]
    return frame.assign(mix=named)


def with_scenario(text: str, server: str, scenario: str) -> str:
    """Return the text of a load line with its scenario, unless the text already ends with it."""
    name = f" ({scenario.removeprefix(f'{server}.')})"
    return text if text.endswith(name) else text + name
