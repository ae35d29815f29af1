"""Start or reach servers, control them, and explain their failures.

The input is a model repository and CPU cores. The output is a running server whose models are all
ready.
"""
