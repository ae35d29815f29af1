"""Experiment `background`: the peak of one tenant while the others stay at fixed rates.

It differs from the experiment `peak` only in the load line, which comes from its run.
"""

from perseus.measurement.experiments.peak import empty_record, load_s, measure

__all__ = ["empty_record", "load_s", "measure"]
