"""Make tables from raw results: this package combines the repeats of each measurement, and computes
sharing ratios, costs and savings with 95 % intervals.

The input is the records and windows of all cells (measured repeats of load lines), and the prices
of servers. The output is the tables of a study.
"""
