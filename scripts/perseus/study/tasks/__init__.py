"""Define the tasks: the settings that a job needs, as one typed model for each rule.

The params of a rule contain the plain form of a task, and the script of the rule validates the task
again. A setting outside the task cannot change the output of the job, and a change of the task runs
the job again. Each task has a module of its own, so that an edit of one module does not run the
jobs of all rules again.
"""
