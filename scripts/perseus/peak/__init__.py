"""The largest load at which every tenant keeps its SLA: statistics, verdicts, estimate, search.

Pure and in any time, real or virtual. In: a system that can be offered load. Out: a peak with its
uncertainty.
"""
