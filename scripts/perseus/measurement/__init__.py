"""Measure one cell: run its experiment on a live server that is sampled meanwhile.

In: a task and its repository. Out: the raw results of the cell.
"""
