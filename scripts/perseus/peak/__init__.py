"""Find the largest load at which every tenant keeps its SLA, from the verdicts on windows of load.

The package reads and writes no files. A search offers load to a real or simulated server, and
returns the peak with its uncertainty.
"""
