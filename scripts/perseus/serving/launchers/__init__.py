"""Start servers or connect to remote servers, with one module per launcher. Each module has the
name of its launcher and defines the function `serve`, which the docstring of `launch` describes.

The properties of launchers that other parts of Perseus need are in `study.launchers.LAUNCHERS`.
"""
