"""What a study is: its definition, what is wrong with one, its cells, their files and tasks.

In: a configuration file and the price list. Out: cells, and one typed task for each job.
"""
