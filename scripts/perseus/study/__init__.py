"""A study: its definition and the checks on it, its cells, their files and tasks.

In: a configuration file and the price list. Out: cells, and one typed task for each job.
"""
