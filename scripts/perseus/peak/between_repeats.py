"""Estimate from few repeats the mean result of many repeats, with its uncertainty
(docs/explanation/repeats.md).

The results of repeats differ from each other by more than their intervals suggest, because the
speed of a host changes between repeats. Two to five results hardly determine the standard deviation
between repeats. Therefore the statistical model has a prior for this standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from perseus.peak.stats import Floats

DRAWS = 2000
"""Number of posterior draws from which the interval of a limit is computed."""

PRIOR = 0.25
"""Parameter sigma of a half-normal distribution: the prior of the standard deviation of log(limit)
between repeats.

On real hosts, the limit of the same server varies by 5 to 20 % between repeats. With this prior,
95 % of the intervals from two to five such repeats contain the mean of many repeats. Even if two
repeats have the same result, the width of the interval is about 20 % of the limit. Without a prior,
the Student's t interval from two repeats would be too wide to be useful.
"""

HOSTS_PRIOR = 1.0
"""Parameter sigma of a half-normal distribution: the prior of the variation between hosts.

This variation is the standard deviation, over hosts, of log(standard deviation between repeats).
The prior is wide, because the standard deviation between repeats is up to eight times as large on a
busy host as on an idle host.
"""

Group = tuple[Floats, Floats]
"""The repeats of one measured quantity: an array of the means and an array of the variances of
log(result), shape (repeats,) each. The variance states the uncertainty within one repeat."""

_DEVIATIONS = np.geomspace(1e-4, 8 * PRIOR, 400)
_BETWEEN_HOSTS = HOSTS_PRIOR * special.ndtri((1 + (np.arange(20) + 0.5) / 20) / 2)


def limit_draws(
    posteriors: Sequence[Floats],
    rng: np.random.Generator,
    draws: int,
    deviations: Floats | None = None,
) -> Floats:
    """Return posterior draws of the limit of each repeat; shape (draws, repeats), all positive.

    `posteriors` contains, for each repeat, posterior draws of its limit. For each draw, the
    function chooses one limit from each posterior, and multiplies all limits by a common factor.
    The common factor stands for the unknown difference between the mean of these few repeats and
    the mean of many repeats. The factor is exp(tau z / sqrt(repeats)), where z has the standard
    normal distribution, and tau is the standard deviation between repeats.

    `deviations`, shape (draws,), contains draws of tau from more data than these repeats. If
    `deviations` is None, the function draws tau from these repeats (`deviation_draws`). A single
    repeat says nothing about tau: without `deviations`, its limit gets no common factor.
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
    """Return the means and the variances of log(draw) over the posterior draws of each repeat;
    shape (repeats,) each."""
    logs = [np.log(posterior) for posterior in posteriors]
    return np.array([each.mean() for each in logs]), np.array([each.var() for each in logs])


def deviation_draws(
    means: Floats, variances: Floats, rng: np.random.Generator, draws: int
) -> Floats:
    """Return posterior draws of the standard deviation between repeats; shape (draws,).

    The statistical model assumes that means[i], the mean log(result) of repeat i, is normally
    distributed around a common mean. The variance of means[i] is the sum of two variances:
    variances[i], from the posterior of repeat i, and the variance between repeats. The prior of the
    common mean is flat, and the prior of the standard deviation between repeats is half-normal
    (Gelman et al., Bayesian Data Analysis, 3rd ed., eq. 5.21).
    """
    return shared_deviation_draws([(means, variances)], rng, draws)


def shared_deviation_draws(
    groups: Sequence[Group], rng: np.random.Generator, draws: int, prior: float = PRIOR
) -> Floats:
    """Return posterior draws of the standard deviation between repeats, from the repeats of several
    measured quantities; shape (draws,).

    The function assumes that the standard deviation is a property of the host, and therefore the
    same for all quantities. The prior of the standard deviation is half-normal, with the parameter
    sigma `prior`.
    """
    log_density = _log_prior(prior) + _log_likelihood(groups)
    density = np.exp(log_density - log_density.max())
    return rng.choice(_DEVIATIONS, draws, p=density / density.sum())


def mean_draws(
    means: Floats, variances: Floats, rng: np.random.Generator, draws: int, prior: float = PRIOR
) -> Floats:
    """Return posterior draws of the common mean of all repeats; shape (draws,). For the statistical
    model and the arguments, see `deviation_draws`."""
    deviations = shared_deviation_draws([(means, variances)], rng, draws, prior)
    weights = 1 / (variances + deviations[:, None] ** 2)
    total = weights.sum(axis=1)
    return np.asarray(
        (weights * means).sum(axis=1) / total + rng.standard_normal(draws) / np.sqrt(total)
    )


def deviation_draws_of_each(
    groups: Mapping[str, Sequence[Group]], rng: np.random.Generator, draws: int
) -> dict[str, Floats]:
    """Return, by host name, posterior draws of the standard deviation between repeats on each host;
    shape (draws,) each.

    `groups` contains the measured quantities of each host; the keys are the names of the hosts. The
    i-th draws of all hosts together form one joint draw. The statistical model treats hosts as
    exchangeable (Gelman et al., Bayesian Data Analysis, 3rd ed., section 5.3): the standard
    deviation of a host is lognormally distributed around a value that all hosts share. The priors
    of this common value (PRIOR) and of the variation between hosts (HOSTS_PRIOR) are half-normal.

    If a host has many repeats, its draws depend mostly on its own repeats. If a host has few
    repeats, its draws depend mostly on the other hosts, provided that these hosts have similar
    standard deviations.
    """
    if len(groups) == 1:
        ((name, own),) = groups.items()
        return {name: shared_deviation_draws(own, rng, draws)}
    logs = np.log(_DEVIATIONS)
    apart = (logs - logs[:, None]) / _BETWEEN_HOSTS[:, None, None]
    # Density of a host's standard deviation (last axis), given the variation between hosts (first
    # axis) and the common value (second axis).
    density = np.exp(-0.5 * apart**2)
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
    """Draw one standard deviation from each row of densities over _DEVIATIONS."""
    upto = densities.cumsum(axis=1)
    below = upto < rng.random(len(upto))[:, None] * upto[:, -1:]
    return _DEVIATIONS[below.sum(axis=1)]


def _log_prior(scale: float) -> Floats:
    """Return log(prior probability) of each standard deviation in _DEVIATIONS, up to a constant.
    The prior is half-normal. Because _DEVIATIONS is evenly spaced on a logarithmic axis, the
    probability of a value is proportional to the prior density times the value."""
    return np.asarray(np.log(_DEVIATIONS) - 0.5 * (_DEVIATIONS / scale) ** 2)


def _log_likelihood(groups: Sequence[Group]) -> Floats:
    """Return log(likelihood of the results) for each standard deviation in _DEVIATIONS."""
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
