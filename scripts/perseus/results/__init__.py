"""Make the tables of a study from its raw results: combine the repeats of each measurement, and
compute sharing ratios, costs and savings with 95 % intervals.

The input is record.json and windows.parquet of each cell (one repeat of one load line), and the
prices of the servers. docs/reference/data.md describes the tables.
"""
