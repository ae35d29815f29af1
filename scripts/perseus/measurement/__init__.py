"""Measure one cell: run its experiment on a live server, and monitor the server meanwhile.

The input is a task and a model repository. The output is the raw results of the cell.
"""
