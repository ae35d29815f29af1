"""Valid values that stand in for invalid ones, so that other checks can run; and the problems that
they may cause.

A stand-in is the place of a value that was replaced. A problem at or below a stand-in is about a
value that nobody wrote; so may be problems elsewhere that miss the invalid value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from perseus.study.problems import Place, path

_FOLLOWING: Final = re.compile(
    # Names that others refer to are not those that were meant.
    r"models(\[\d+\](\.name)?)? (models\[\d+\]|scenarios\[\d+\]\.tenants\[\d+\]\.model"
    r"|demand\.models\[\d+\]\.name)"
    r"|servers(\[\d+\](\.name)?)? scenarios\[\d+\]\.servers\[\d+\]"
    # Nor is it known which models are served, or how many share a server.
    r"|scenarios(\[\d+\])? (models\[\d+\]|demand\.models.*)"
    r"|scenarios\[(?P<i>\d+)\]\.tenants(\[\d+\](\.(model|name))?)? (models\[\d+\]|demand\.models.*"
    r"|scenarios\[(?P=i)\]\.(name|tenants|experiments.*|grid.*))"
    r"|scenarios(\[\d+\](\.servers.*)?)? demand\.servers.*"
    # Nor what a model is to be run in, what a tenant's settings are to fit, what a price is of, and
    # what a grid varies.
    r"|(models\[\d+\]|scenarios\[\d+\]\.tenants\[\d+\])\.precision"
    r" scenarios\[\d+\]\.(tenants\[\d+\]\.model|grid)"
    r"|scenarios\[(?P<j>\d+)\]\.tenants\[(?P<t>\d+)\]\..*"
    r" scenarios\[(?P=j)\]\.tenants\[(?P=t)\]\.(?!model$|name$).*"
    r"|servers\[(?P<s>\d+)\]\.(?P<p>price|other_prices\[\d+\])\..*"
    r" servers\[(?P=s)\]\.(?P=p)(\..*)?"
    r"|scenarios\[(?P<g>\d+)\]\.grid\.vary\..* scenarios\[(?P=g)\]\.grid(\.vary)?"
    # Nor what a file of arrivals is read as.
    r"|(?P<f>.*\.(trace|traces\[\d+\]))\.(file|column|unit|where.*) (?P=f)"
    # Nor which keys a process of arrivals has.
    r"|measurement\.arrivals\.process measurement\.arrivals\..*"
    r"|scenarios\[(?P<k>\d+)\]\.experiments\[(?P<e>\d+)\]\.process"
    r" scenarios\[(?P=k)\]\.experiments\[(?P=e)\](\..*)?"
)
"""Pairs of a stand-in and the place of a problem that it alone may cause."""


def stands_in(place: Place, stand_ins: Sequence[Place]) -> bool:
    """Whether a value at or around the place was replaced."""
    return any(place[: len(each)] == each for each in stand_ins)


def may_follow(place: Place, text: str, stand_ins: Sequence[Place]) -> bool:
    """Whether a stand-in may be the only cause of a problem; it is then reported after the first
    correction."""
    return stands_in(place, stand_ins) or any(
        _asks_for(place, text, each) or _FOLLOWING.fullmatch(f"{path(each)} {path(place)}")
        for each in stand_ins
    )


def _asks_for(place: Place, text: str, stand_in: Place) -> bool:
    """Whether a problem says that a mapping lacks a key that is there but invalid."""
    return place == stand_in[:-1] and f"{stand_in[-1]}:" in text
