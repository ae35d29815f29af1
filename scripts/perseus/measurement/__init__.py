"""Measure one cell: run its experiment on a live server, and sample the server meanwhile.

In: a task and its repository. Out: the raw results of the cell.
"""
