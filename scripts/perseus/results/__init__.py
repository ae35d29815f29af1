"""Make tables from raw results: combine repeats, and compute ratios, costs and savings with
intervals.

In: records and windows of cells, prices. Out: the tables of a study.
"""
