"""Define the tasks: for each Snakemake rule, a pydantic class with the settings that its jobs need.

A rule passes a task to its script as dictionaries in `params`. The script converts the dictionaries
into the pydantic class, which validates them. If the task of a job changes, Snakemake repeats the
job, so a task contains only settings that can change the output of the job. Each task has a module
of its own, so that an edit of one module does not repeat the jobs of all rules.
"""
