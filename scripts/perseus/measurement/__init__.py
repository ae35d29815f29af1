"""Measure one cell: run its experiment on a running server, and monitor the server during the
experiment.

The input is the task (all settings of the cell) and a model repository. The output is the raw
results of the cell.
"""
