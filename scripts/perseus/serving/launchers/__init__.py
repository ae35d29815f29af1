"""Launchers: each is a module of its name with a function `serve`, which `launch` describes.

Properties of launchers that the rest of the study needs are in `study.launchers.LAUNCHERS`.
"""
