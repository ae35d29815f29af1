"""Tasks: all that a job needs to know of the study, one typed model for each rule.

A rule's params hold the plain form of a task; its script validates it back. What is not in the
task cannot change the job's output, and what is in it re-runs the job. Each task has a module of
its own, so that an edit of one is no edit of the others' code.
"""
