"""Start or reach servers, control them, and explain their failures.

In: a model repository and cores. Out: a running server whose models all answer.
"""
