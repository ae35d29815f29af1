"""From raw results to tables: repeats combined, ratios, costs and savings with intervals.

In: records and windows of cells, prices. Out: the tables of a study.
"""
