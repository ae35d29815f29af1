"""Make the descriptions of load lines (column `mix`) unambiguous: if two scenarios of a server have
the same description, append the name of the scenario."""

from __future__ import annotations

from collections.abc import Mapping, Set

import pandas as pd


def with_scenario_names(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables with unambiguous descriptions in the column `mix`. Each ambiguous
    description gets the name of the scenario."""
    same = in_several_scenarios(tables["peaks"]) if "peaks" in tables else set()
    return {name: with_scenarios(frame, same) for name, frame in tables.items()}


def in_several_scenarios(lines: pd.DataFrame) -> Set[str]:
    """Return the descriptions that occur in at least two scenarios of the same server. `lines` has
    the columns of the table `peaks`."""
    each = lines.drop_duplicates(["server", "scenario", "mix"])
    return frozenset(each[each.duplicated(["server", "mix"])]["mix"])


def with_scenarios(frame: pd.DataFrame, mixes: Set[str]) -> pd.DataFrame:
    """Return the table, in which the descriptions `mixes` in the column `mix` also contain the name
    of the scenario.

    A table whose rows are not load lines stays unchanged.
    """
    if not mixes or not {"server", "scenario", "load_line", "mix"} <= set(frame):
        return frame
    if "grid" in frame:  # the rows are the settings of a grid
        return frame
    named = [
        with_scenario(mix, server, scenario) if mix in mixes else mix
        for mix, server, scenario in zip(
            frame["mix"], frame["server"], frame["scenario"], strict=True
        )
    ]
    return frame.assign(mix=named)


def with_scenario(text: str, server: str, scenario: str) -> str:
    """Append the name of the scenario to the description of a load line, unless the description
    already ends with this name."""
    name = f" ({scenario.removeprefix(f'{server}.')})"
    return text if text.endswith(name) else text + name
