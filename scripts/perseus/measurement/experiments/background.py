"""Run the experiment `background`: search for the peak of one tenant while all other tenants have
fixed rates.

The experiment `background` differs from the experiment `peak` only in the load line (the rates to
try).
"""

from perseus.measurement.experiments.peak import empty_record, load_s, measure

__all__ = ["empty_record", "load_s", "measure"]
