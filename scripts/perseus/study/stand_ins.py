"""Track the stand-ins: valid values that replace invalid values, so that other checks can run.

A problem at or below the place of a stand-in is about a value that the user did not write. A
problem at another place may also be a consequence of the replaced value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from perseus.study.problems import Place, path

_FOLLOWING: Final = re.compile(
    # A reference may mean an item whose own name is invalid and therefore replaced.
    r"models(\[\d+\](\.name)?)? (models\[\d+\]|scenarios\[\d+\]\.tenants\[\d+\]\.model"
    r"|demand\.models\[\d+\]\.name)"
    r"|servers(\[\d+\](\.name)?)? scenarios\[\d+\]\.servers\[\d+\]"
    # Without the replaced value, it is also unknown which models are served, or how many models
    # share a server.
    r"|scenarios(\[\d+\])? (models\[\d+\]|demand\.models.*)"
    r"|scenarios\[(?P<i>\d+)\]\.tenants(\[\d+\](\.(model|name))?)? (models\[\d+\]|demand\.models.*"
    r"|scenarios\[(?P=i)\]\.(name|tenants|experiments.*|grid.*))"
    r"|scenarios(\[\d+\](\.servers.*)?)? demand\.servers.*"
    # Without the replaced value, the precision of a model, the settings that a tenant must match,
    # the machine of a price, or the keys that a grid varies are unknown.
    r"|(models\[\d+\]|scenarios\[\d+\]\.tenants\[\d+\])\.precision"
    r" scenarios\[\d+\]\.(tenants\[\d+\]\.model|grid)"
    r"|scenarios\[(?P<j>\d+)\]\.tenants\[(?P<t>\d+)\]\..*"
    r" scenarios\[(?P=j)\]\.tenants\[(?P=t)\]\.(?!model$|name$).*"
    r"|servers\[(?P<s>\d+)\]\.(?P<p>price|other_prices\[\d+\])\..*"
    r" servers\[(?P=s)\]\.(?P=p)(\..*)?"
    r"|scenarios\[(?P<g>\d+)\]\.grid\.vary\..* scenarios\[(?P=g)\]\.grid(\.vary)?"
    # Without the replaced value, the columns of a file of arrivals are unknown.
    r"|(?P<f>.*\.(trace|traces\[\d+\]))\.(file|column|unit|where.*) (?P=f)"
    # Without the replaced value, the keys of an arrival process are unknown.
    r"|measurement\.arrivals\.process measurement\.arrivals\..*"
    r"|scenarios\[(?P<k>\d+)\]\.experiments\[(?P<e>\d+)\]\.process"
    r" scenarios\[(?P=k)\]\.experiments\[(?P=e)\](\..*)?"
)
"""Patterns of the place of a stand-in, each with the places of problems that the stand-in may
cause."""


def stands_in(place: Place, stand_ins: Sequence[Place]) -> bool:
    """Return whether a stand-in replaced the value at this place, or a value that contains it."""
    return any(place[: len(each)] == each for each in stand_ins)


def may_follow(place: Place, text: str, stand_ins: Sequence[Place]) -> bool:
    """Return whether a stand-in may be the only cause of a problem.

    Perseus does not report such a problem. If it has another cause, Perseus reports it after the
    user corrects the replaced value.
    """
    return stands_in(place, stand_ins) or any(
        _asks_for(place, text, each) or _FOLLOWING.fullmatch(f"{path(each)} {path(place)}")
        for each in stand_ins
    )


def _asks_for(place: Place, text: str, stand_in: Place) -> bool:
    """Return whether a problem says that a key is missing, although the user gave it an invalid
    value."""
    return place == stand_in[:-1] and f"{stand_in[-1]}:" in text
