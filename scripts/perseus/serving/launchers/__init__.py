"""Start or reach servers, with one module per launcher. The module has the name of the launcher and
defines the function `serve`. The docstring of `launch` states what `serve` must do.

The properties of launchers that other parts of Perseus need are in `study.launchers.LAUNCHERS`.
"""
