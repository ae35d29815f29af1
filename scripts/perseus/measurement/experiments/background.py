"""Experiment `background`: one tenant's peak beside the others, which stay at their rates.

It is the search of a peak; what is its own is the load line, which its run makes.
"""

from perseus.measurement.experiments.peak import load_s, measure, nothing

__all__ = ["load_s", "measure", "nothing"]
