"""The largest load at which every tenant keeps its SLA: statistics, verdicts, estimate, search.

The package does no input or output, and runs in real or virtual time. In: a system to which it can
offer load. Out: a peak with its uncertainty.
"""
