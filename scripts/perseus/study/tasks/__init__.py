"""Define the tasks: the settings that a job needs, as one typed (pydantic) class for each rule.

The `params` of a rule contain a task as dictionaries, and the script of the rule validates these
dictionaries. Only settings in the task can change the output of a job, and each change of the task
repeats the job. Each task has a module of its own, so that an edit of one task does not repeat the
jobs of all rules.
"""
