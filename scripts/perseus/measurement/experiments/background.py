"""Run the experiment `background`: search for the peak of one tenant while all others have fixed
rates.

The experiment differs from the experiment `peak` only in the load line, which follows from the
settings of the experiment.
"""

from perseus.measurement.experiments.peak import empty_record, load_s, measure

__all__ = ["empty_record", "load_s", "measure"]
