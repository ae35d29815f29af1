"""One cell: a live server under load, watched, by the procedure of its experiment.

In: a task and its repository. Out: the raw results of the cell.
"""
