"""Start servers in different ways, with one module per launcher. Each launcher is a module with its
name and a function `serve`, which `launch` describes.

The properties of launchers that other parts of Perseus need are in `study.launchers.LAUNCHERS`.
"""
