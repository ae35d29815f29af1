"""Start or reach servers, with one module per launcher. The module of a launcher has the name of
the launcher and a function `serve`, which `launch` describes.

The properties of launchers that other parts of Perseus need are in `study.launchers.LAUNCHERS`.
"""
