"""Define the tasks: for each Snakemake rule, a pydantic class with the settings that its jobs need.

The `params` of a rule contain a task as dictionaries, and the script of the rule validates these
dictionaries. A change of the task repeats the job, so a task has only settings that can change the
output of the job. Each task has a module of its own, so that an edit of one module does not repeat
the jobs of all rules.
"""
