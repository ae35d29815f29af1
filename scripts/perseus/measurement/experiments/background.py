"""Experiment `background`: the peak of one tenant while the others stay at fixed rates.

It is the search of a peak; what is its own is the load line, which its run makes.
"""

from perseus.measurement.experiments.peak import empty_record, load_s, measure

__all__ = ["empty_record", "load_s", "measure"]
