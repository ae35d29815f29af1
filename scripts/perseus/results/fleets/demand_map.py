"""Compute how many servers carry the demands for two models: with dedicated servers only, and with
shared servers, too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from perseus.peak.stats import Floats
from perseus.results.fleets.cheapest import TOLERANCE


def needed_together(
    rates_rps: Floats, first_rps: Floats, second_rps: Floats, most: int
) -> NDArray[np.float64]:
    """For each pair of demands, return the least number of servers, shared or dedicated, that carry
    both demands; NaN if this number exceeds `most`.

    The result has shape (demands for the second model, demands for the first model). Each column of
    `rates_rps`, shape (2 models, columns), is an operating point: one server carries both rates of
    the column at the same time.
    """
    found = np.full((len(second_rps), len(first_rps)), np.nan)
    for servers, (of_first, of_second) in _reached(rates_rps, most):
        # The first of the combinations that carry the first demand has the largest capacity for
        # the second model.
        left = np.searchsorted(of_first, first_rps * (1 - TOLERANCE))
        most_second = np.append(of_second, 0.0)[left]
        carries = second_rps[:, None] * (1 - TOLERANCE) <= most_second
        found[np.isnan(found) & carries] = servers
    return found


def needed_apart(
    alone_rps: tuple[float, float], first_rps: Floats, second_rps: Floats
) -> NDArray[np.float64]:
    """For each pair of demands, return the least number of dedicated servers that carry both
    demands.

    The result has shape (demands for the second model, demands for the first model). `alone_rps`
    has the capacity of a dedicated server for each model.
    """
    first, second = (
        np.ceil(rps / alone - TOLERANCE)
        for rps, alone in zip((first_rps, second_rps), alone_rps, strict=True)
    )
    return np.asarray(second[:, None] + first)


def _reached(rates_rps: Floats, most: int) -> Iterator[tuple[int, Floats]]:
    """For each number of servers from 1 to `most`, yield this number, and the capacities of all
    useful combinations of this number of servers.

    The array of capacities has one row for each of the two models, and one column for each useful
    combination. A combination is useful if no other combination with the same number of servers is
    at least as good for both models. The columns are in ascending order of the capacity for the
    first model, and therefore in descending order of the capacity for the second model.
    """
    carried = np.zeros((2, 1))
    for servers in range(1, most + 1):
        one_more = (carried[:, :, None] + rates_rps[:, None, :]).reshape(2, -1)
        carried = _useful(one_more)
        yield servers, carried


def _useful(carried: Floats) -> Floats:
    ascending = carried[:, np.lexsort((carried[1], carried[0]))]
    most_second = np.maximum.accumulate(ascending[1, ::-1])[::-1]
    return ascending[:, np.append(most_second[:-1] > most_second[1:], True)]
