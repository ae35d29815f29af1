"""Requests: their send times, contents, transport and outcomes.

In: a running server and an arrival process. Out: the times and the status of every request.
"""
