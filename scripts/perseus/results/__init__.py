"""Make tables from raw results: this package combines the repeats of each measurement, and computes
sharing ratios, costs and savings with 95 % intervals.

The input is record.json and windows.parquet of each cell (one measured repeat of a load line), and
the prices of the servers. The output consists of the tables of a study.
"""
