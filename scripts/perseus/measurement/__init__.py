"""Measure one cell: start its server, run its experiment on the server, and monitor the server.

A cell is the smallest unit that Perseus measures, for example one repeat of one search. The input
is the task (all settings of the cell) and a model repository. The output is the raw results of the
cell.
"""
