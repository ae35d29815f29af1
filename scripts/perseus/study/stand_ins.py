"""Valid values that replace invalid ones, so that other checks can run.

A stand-in is the place of a replaced value. A problem at or below a stand-in is about a value that
the user did not write. Problems elsewhere may also follow from the missing invalid value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from perseus.study.problems import Place, path

_FOLLOWING: Final = re.compile(
    # References to a replaced name are not what the user meant.
    r"models(\[\d+\](\.name)?)? (models\[\d+\]|scenarios\[\d+\]\.tenants\[\d+\]\.model"
    r"|demand\.models\[\d+\]\.name)"
    r"|servers(\[\d+\](\.name)?)? scenarios\[\d+\]\.servers\[\d+\]"
    # It is also unknown which models are served, or how many share a server.
    r"|scenarios(\[\d+\])? (models\[\d+\]|demand\.models.*)"
    r"|scenarios\[(?P<i>\d+)\]\.tenants(\[\d+\](\.(model|name))?)? (models\[\d+\]|demand\.models.*"
    r"|scenarios\[(?P=i)\]\.(name|tenants|experiments.*|grid.*))"
    r"|scenarios(\[\d+\](\.servers.*)?)? demand\.servers.*"
    # Also unknown: the precision of a model, the settings that a tenant must fit, the machine of a
    # price, and the keys that a grid varies.
    r"|(models\[\d+\]|scenarios\[\d+\]\.tenants\[\d+\])\.precision"
    r" scenarios\[\d+\]\.(tenants\[\d+\]\.model|grid)"
    r"|scenarios\[(?P<j>\d+)\]\.tenants\[(?P<t>\d+)\]\..*"
    r" scenarios\[(?P=j)\]\.tenants\[(?P=t)\]\.(?!model$|name$).*"
    r"|servers\[(?P<s>\d+)\]\.(?P<p>price|other_prices\[\d+\])\..*"
    r" servers\[(?P=s)\]\.(?P=p)(\..*)?"
    r"|scenarios\[(?P<g>\d+)\]\.grid\.vary\..* scenarios\[(?P=g)\]\.grid(\.vary)?"
    # Also unknown: the columns of a file of arrivals.
    r"|(?P<f>.*\.(trace|traces\[\d+\]))\.(file|column|unit|where.*) (?P=f)"
    # Also unknown: the keys of an arrival process.
    r"|measurement\.arrivals\.process measurement\.arrivals\..*"
    r"|scenarios\[(?P<k>\d+)\]\.experiments\[(?P<e>\d+)\]\.process"
    r" scenarios\[(?P=k)\]\.experiments\[(?P=e)\](\..*)?"
)
"""Pairs of a stand-in and the place of a problem that only the stand-in may cause."""


def stands_in(place: Place, stand_ins: Sequence[Place]) -> bool:
    """Return whether a value at or around the place was replaced."""
    return any(place[: len(each)] == each for each in stand_ins)


def may_follow(place: Place, text: str, stand_ins: Sequence[Place]) -> bool:
    """Return whether a stand-in may be the only cause of a problem.

    Such a problem is reported only after the first correction.
    """
    return stands_in(place, stand_ins) or any(
        _asks_for(place, text, each) or _FOLLOWING.fullmatch(f"{path(each)} {path(place)}")
        for each in stand_ins
    )


def _asks_for(place: Place, text: str, stand_in: Place) -> bool:
    """Return whether a problem says that a mapping lacks a key that exists but is invalid."""
    return place == stand_in[:-1] and f"{stand_in[-1]}:" in text
