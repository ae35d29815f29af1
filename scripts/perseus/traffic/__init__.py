"""Requests: when they are sent, what they carry, how they travel, and what became of each.

In: a running server and an arrival process. Out: the times and the status of every request.
"""
