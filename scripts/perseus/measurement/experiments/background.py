"""Run the experiment `background`: search for the peak of one tenant while all other tenants have
fixed rates.

The only difference from the experiment `peak` is the load line (the rates that the search tries).
"""

from perseus.measurement.experiments.peak import empty_record, load_s, measure

__all__ = ["empty_record", "load_s", "measure"]
