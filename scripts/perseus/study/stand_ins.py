"""Decide which problems of a configuration have a stand-in as their only cause.

A stand-in is a valid value with which Perseus replaces an invalid value, so that the remaining
checks can run. A check may find a problem in a stand-in, or in another key because of a stand-in.
The user did not write the stand-in, so Perseus does not report such a problem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from perseus.study.problems import Place, path

_FOLLOWING: Final = re.compile(
    # A stand-in may have replaced the name to which a key at another place refers.
    r"models(\[\d+\](\.name)?)? (models\[\d+\]|scenarios\[\d+\]\.tenants\[\d+\]\.model"
    r"|demand\.models\[\d+\]\.name)"
    r"|servers(\[\d+\](\.name)?)? scenarios\[\d+\]\.servers\[\d+\]"
    # With a stand-in for a tenant, Perseus does not know which models are served, or how many
    # models share a server.
    r"|(models(\[\d+\](\.(name|served_model))?)?|scenarios(\[\d+\](\.tenants.*)?)?)"
    r" servers\[\d+\]\.runtime"
    r"|scenarios(\[\d+\])? (models\[\d+\]|demand\.models.*)"
    r"|scenarios\[(?P<i>\d+)\]\.tenants(\[\d+\](\.(model|name))?)? (models\[\d+\]|demand\.models.*"
    r"|scenarios\[(?P=i)\]\.(name|tenants|experiments.*|grid.*))"
    r"|scenarios(\[\d+\](\.servers.*)?)? demand\.servers.*"
    # With a stand-in, Perseus does not know the precision of a model, the other settings of a
    # tenant, the machine of a price, or the keys that a grid varies.
    r"|(models\[\d+\]|scenarios\[\d+\]\.tenants\[\d+\])\.precision"
    r" scenarios\[\d+\]\.(tenants\[\d+\]\.model|grid)"
    r"|scenarios\[(?P<j>\d+)\]\.tenants\[(?P<t>\d+)\]\..*"
    r" scenarios\[(?P=j)\]\.tenants\[(?P=t)\]\.(?!model$|name$).*"
    r"|servers\[(?P<s>\d+)\]\.(?P<p>price|other_prices\[\d+\])\..*"
    r" servers\[(?P=s)\]\.(?P=p)(\..*)?"
    r"|scenarios\[(?P<g>\d+)\]\.grid\.vary\..* scenarios\[(?P=g)\]\.grid(\.vary)?"
    # With a stand-in, Perseus does not know on which servers a scenario searches peaks, or which
    # prices of these servers a fleet may use.
    r"|(scenarios\[\d+\]\.(servers|experiments)|servers\[\d+\]\.price|demand\.spot|costs).*"
    r" demand\.models\[\d+\]"
    # With a stand-in, Perseus does not know the columns of a trace file.
    r"|(?P<f>.*\.(trace|traces\[\d+\]))\.(file|column|unit|where.*) (?P=f)"
    # With a stand-in, Perseus does not know the arrival process, on which the allowed keys depend.
    r"|measurement\.arrivals\.process measurement\.arrivals\..*"
    r"|scenarios\[(?P<k>\d+)\]\.experiments\[(?P<e>\d+)\]\.process"
    r" scenarios\[(?P=k)\]\.experiments\[(?P=e)\](\..*)?"
)
"""Pattern of a text with two places and a space between them: the place of a stand-in, and the
place of a problem that this stand-in may cause."""


def stands_in(place: Place, stand_ins: Sequence[Place]) -> bool:
    """Return whether a stand-in replaced the value at `place`, or a mapping or list that contains
    this value."""
    return any(place[: len(each)] == each for each in stand_ins)


def may_follow(place: Place, text: str, stand_ins: Sequence[Place]) -> bool:
    """Return whether a problem may exist only because of a stand-in.

    Perseus does not report such a problem. If the problem remains after the user has corrected the
    invalid value, Perseus reports it in the next run.
    """
    return stands_in(place, stand_ins) or any(
        _asks_for(place, text, each) or _FOLLOWING.fullmatch(f"{path(each)} {path(place)}")
        for each in stand_ins
    )


def _asks_for(place: Place, text: str, stand_in: Place) -> bool:
    """Return whether the message `text` asks for the key of the stand-in: the user wrote this key,
    but with an invalid value."""
    return place == stand_in[:-1] and f"{stand_in[-1]}:" in text
