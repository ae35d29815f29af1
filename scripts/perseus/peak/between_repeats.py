"""Estimate the mean of many repeats, and its uncertainty, from few repeats
(docs/explanation/repeats.md).

Repeats differ by more than their own uncertainty, because the speed of hosts changes. The size of
the difference is unknown, and two to five repeats hardly determine it. Therefore it is a parameter
of the model, with a prior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from perseus.peak.stats import Floats

DRAWS = 2000
"""Number of draws of a limit, from which the ends of its interval are computed."""

PRIOR = 0.25
"""Standard deviation of the half-normal prior on the deviation between repeats, of log(limit).

Real hosts changed by 5 to 20 %. With this prior, intervals of two to five repeats cover the mean
in 95 % of cases for such hosts, and two repeats that agree still give an interval of about 20 %.
The t interval of two repeats is uselessly wide.
"""

HOSTS_PRIOR = 1.0
"""Standard deviation of the half-normal prior on the variation between hosts, of log(deviation
between repeats).

The deviations of an idle and a busy host differ by a factor of up to eight.
"""

Group = tuple[Floats, Floats]
"""A quantity that was repeated: means and variances of the logarithm of each repeat's result."""

_DEVIATIONS = np.geomspace(1e-4, 8 * PRIOR, 400)
_BETWEEN_HOSTS = HOSTS_PRIOR * special.ndtri((1 + (np.arange(20) + 0.5) / 20) / 2)


def limit_draws(
    posteriors: Sequence[Floats],
    rng: np.random.Generator,
    draws: int,
    deviations: Floats | None = None,
) -> Floats:
    """Return draws of the limit of each repeat, shape (draws, repeats); all are positive.

    Each repeat is drawn from its own posterior. All repeats of a draw have a common factor for the
    difference between the mean of few repeats and that of many: exp(tau z / sqrt(repeats)), with z
    standard normal and tau from `deviation_draws`. A single repeat has no such factor, since it is
    no evidence of tau. If other data also determine tau, `deviations` (draws,) are its draws.
    """
    limits = np.column_stack([rng.choice(posterior, draws) for posterior in posteriors])
    repeats = len(posteriors)
    if deviations is None:
        if repeats == 1:
            return limits
        deviations = deviation_draws(*log_moments(posteriors), rng, draws)
    factors = np.exp(deviations * rng.standard_normal(draws) / np.sqrt(repeats))
    return np.asarray(limits * factors[:, None])


def log_moments(posteriors: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the mean and the variance of the logarithm of each posterior, shape (repeats,)."""
    logs = [np.log(posterior) for posterior in posteriors]
    return np.array([each.mean() for each in logs]), np.array([each.var() for each in logs])


def deviation_draws(
    means: Floats, variances: Floats, rng: np.random.Generator, draws: int
) -> Floats:
    """Return draws of the standard deviation between repeats, shape (draws,).

    The result of repeat i, means[i], is normal around a common mean, with a variance that is the
    sum of its own posterior's, variances[i], and that between repeats. The prior of the common mean
    is flat, that of the deviation half-normal (Gelman et al., Bayesian Data Analysis, 3rd ed., eq.
    5.21).
    """
    return shared_deviation_draws([(means, variances)], rng, draws)


def shared_deviation_draws(
    groups: Sequence[Group], rng: np.random.Generator, draws: int, prior: float = PRIOR
) -> Floats:
    """Return the same for several quantities with their own means: (means, variances).

    The deviation between repeats is a property of the host, so all quantities share it. `prior` is
    the standard deviation of the half-normal prior.
    """
    log_density = _log_prior(prior) + _log_likelihood(groups)
    density = np.exp(log_density - log_density.max())
    return rng.choice(_DEVIATIONS, draws, p=density / density.sum())


def mean_draws(
    means: Floats, variances: Floats, rng: np.random.Generator, draws: int, prior: float = PRIOR
) -> Floats:
    """Return draws of the common mean of repeats that differ as in `deviation_draws`, shape
    (draws,)."""
    deviations = shared_deviation_draws([(means, variances)], rng, draws, prior)
    weights = 1 / (variances + deviations[:, None] ** 2)
    total = weights.sum(axis=1)
    return np.asarray(
        (weights * means).sum(axis=1) / total + rng.standard_normal(draws) / np.sqrt(total)
    )


def deviation_draws_of_each(
    groups: Mapping[str, Sequence[Group]], rng: np.random.Generator, draws: int
) -> dict[str, Floats]:
    """Return the deviation draws of each of several hosts, by name; (draws,) each, drawn jointly.

    Hosts are exchangeable (Gelman et al., Bayesian Data Analysis, 3rd ed., section 5.3): the
    logarithm of the deviation of each host is normal around a common value with the prior above,
    and with a half-normal standard deviation. So the deviation of a host with many repeats follows
    from these, and that of a host with few or no repeats from the other hosts, if these are
    similar.
    """
    if len(groups) == 1:
        ((name, own),) = groups.items()
        return {name: shared_deviation_draws(own, rng, draws)}
    logs = np.log(_DEVIATIONS)
    apart = (logs - logs[:, None]) / _BETWEEN_HOSTS[:, None, None]
    density = np.exp(
        -0.5 * apart**2
    )  # density of a host's deviation (last axis) around the common one
    density /= density.sum(axis=2, keepdims=True)
    likelihoods = {}
    for name, own in groups.items():
        log_likelihood = _log_likelihood(own)
        likelihoods[name] = np.exp(log_likelihood - log_likelihood.max())
    with np.errstate(divide="ignore"):
        of_hosts = sum(np.log(density @ each) for each in likelihoods.values())
    log_common = (_log_prior(PRIOR) + of_hosts).ravel()
    common = np.exp(log_common - log_common.max())
    drawn = rng.choice(common.size, draws, p=common / common.sum())
    at = np.unravel_index(drawn, of_hosts.shape)
    return {name: _drawn(density[at] * each, rng) for name, each in likelihoods.items()}


def _drawn(densities: Floats, rng: np.random.Generator) -> Floats:
    """Draw one deviation from each row of densities."""
    upto = densities.cumsum(axis=1)
    below = upto < rng.random(len(upto))[:, None] * upto[:, -1:]
    return _DEVIATIONS[below.sum(axis=1)]


def _log_prior(scale: float) -> Floats:
    """Log prior of _DEVIATIONS: half-normal, on a logarithmic grid."""
    return np.asarray(np.log(_DEVIATIONS) - 0.5 * (_DEVIATIONS / scale) ** 2)


def _log_likelihood(groups: Sequence[Group]) -> Floats:
    """Log likelihood of _DEVIATIONS."""
    found = np.zeros(len(_DEVIATIONS))
    for means, variances in groups:
        weights = 1 / (variances + _DEVIATIONS[:, None] ** 2)
        centre = (weights * means).sum(axis=1) / weights.sum(axis=1)
        found += 0.5 * (
            np.log(weights).sum(axis=1)
            - np.log(weights.sum(axis=1))
            - (weights * (means - centre[:, None]) ** 2).sum(axis=1)
        )
    return found
