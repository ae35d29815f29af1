"""Start or reach servers, control them, and explain their failures.

In: a model repository and cores. Out: a running server with all models ready.
"""
