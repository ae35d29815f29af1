"""Find the largest load at which every tenant keeps its SLA, from the verdicts on windows of load.

The package reads and writes no files. A search offers load to a system, in real or virtual time,
and returns the peak with its uncertainty.
"""
