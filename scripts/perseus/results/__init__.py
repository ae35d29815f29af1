"""Make tables from raw results: this package combines repeats, and computes ratios, costs and
savings with 95 % intervals.

The input is the records and windows of all cells, and prices. The output is the tables of a study.
"""
