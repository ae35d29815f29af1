"""Find the largest load at which every tenant keeps its SLA.

A search offers load to a real or simulated server in windows (time intervals with constant rates).
The search computes a verdict on each window, and returns the peak with its uncertainty. The package
reads and writes no files.
"""
