"""Servers: how one is started or reached, spoken to, and why it failed.

In: a model repository and cores. Out: a running server whose models all answer.
"""
