"""Estimate the mean of many repeats, and its uncertainty, from few repeats
(docs/explanation/repeats.md).

Repeats differ by more than their own uncertainty, because the speed of hosts changes. The size
of the difference is unknown, and two to five repeats hardly show it. So it is a parameter of its
own, with a prior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from perseus.peak.stats import Floats

DRAWS = 2000
"""Number of draws of a limit, for the ends of its interval."""

PRIOR = 0.25
"""Standard deviation of the half-normal prior on the deviation between repeats, of log(limit).

Real hosts changed by 5 to 20 %. With this prior intervals of two to five repeats hold their 95 %
up to there, and two repeats that agree still give one of about 20 %; the t interval of two has
no use.
"""

HOSTS_PRIOR = 1.0
"""The same of the half-normal prior on how far hosts lie apart, of log(deviation between
repeats).

The deviations of an idle and a busy host differ by a factor of up to eight.
"""

Group = tuple[Floats, Floats]
"""Something that was repeated: means of the logarithm of what each repeat found, and variances."""

_DEVIATIONS = np.geomspace(1e-4, 8 * PRIOR, 400)
_BETWEEN_HOSTS = HOSTS_PRIOR * special.ndtri((1 + (np.arange(20) + 0.5) / 20) / 2)


def limit_draws(
    posteriors: Sequence[Floats],
    rng: np.random.Generator,
    draws: int,
    deviations: Floats | None = None,
) -> Floats:
    """Draws of the limit of each repeat, shape (draws, repeats); all are positive.

    Each repeat is drawn from its own posterior. A factor that a draw has in common is how far the
    mean of so few may lie from that of many: exp(tau z / sqrt(repeats)), z standard normal and tau
    from `deviation_draws`. A single repeat has no such factor: of what lies between repeats it
    knows nothing. Who knows more of tau than these repeats gives its draws, `deviations` (draws,).
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
    """The mean and the variance of the logarithm of each posterior, shape (repeats,)."""
    logs = [np.log(posterior) for posterior in posteriors]
    return np.array([each.mean() for each in logs]), np.array([each.var() for each in logs])


def deviation_draws(
    means: Floats, variances: Floats, rng: np.random.Generator, draws: int
) -> Floats:
    """Draws of the standard deviation between repeats, shape (draws,).

    Repeat i found means[i], a normal variable around a common mean with the variance of its own
    posterior, variances[i], plus that between repeats; the prior of the common mean is flat, that
    of the deviation half-normal (Gelman et al., Bayesian Data Analysis, 3rd ed., eq. 5.21).
    """
    return shared_deviation_draws([(means, variances)], rng, draws)


def shared_deviation_draws(
    groups: Sequence[Group], rng: np.random.Generator, draws: int, prior: float = PRIOR
) -> Floats:
    """The same for several quantities with their own means: (means, variances).

    The deviation between repeats belongs to the host, so all quantities share it. `prior` is the
    standard deviation of the half-normal prior.
    """
    log_density = _log_prior(prior) + _log_likelihood(groups)
    density = np.exp(log_density - log_density.max())
    return rng.choice(_DEVIATIONS, draws, p=density / density.sum())


def mean_draws(
    means: Floats, variances: Floats, rng: np.random.Generator, draws: int, prior: float = PRIOR
) -> Floats:
    """Draws of the common mean of repeats that differ as in `deviation_draws`, shape (draws,)."""
    deviations = shared_deviation_draws([(means, variances)], rng, draws, prior)
    weights = 1 / (variances + deviations[:, None] ** 2)
    total = weights.sum(axis=1)
    return np.asarray(
        (weights * means).sum(axis=1) / total + rng.standard_normal(draws) / np.sqrt(total)
    )


def deviation_draws_of_each(
    groups: Mapping[str, Sequence[Group]], rng: np.random.Generator, draws: int
) -> dict[str, Floats]:
    """The same for each of several hosts, by name; (draws,) each, drawn jointly.

    Hosts are exchangeable (Gelman et al., Bayesian Data Analysis, 3rd ed., section 5.3): the
    logarithm of the deviation of each is normal around one that they have in common, which has the
    prior above, with a standard deviation that is half-normal. So a host with many repeats tells of
    itself, and one with few or none is like the others as far as these are alike.
    """
    if len(groups) == 1:
        ((name, own),) = groups.items()
        return {name: shared_deviation_draws(own, rng, draws)}
    logs = np.log(_DEVIATIONS)
    apart = (logs - logs[:, None]) / _BETWEEN_HOSTS[:, None, None]
    density = np.exp(-0.5 * apart**2)  # of a host's deviation (last) around the common one
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
