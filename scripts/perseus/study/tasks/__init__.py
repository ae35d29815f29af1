"""Tasks: the settings that a job needs, as one typed model for each rule.

A rule's params hold the plain form of a task; its script validates it again. A setting outside the
task cannot change the output of the job, and a change of the task runs the job again. Each task has
a module of its own, so that an edit of one task does not change the code of others.
"""
