"""The launchers: each is a module of its name with a function `serve`, which `launch` describes.

What follows from a launcher for the rest of the study is in `study.launchers.LAUNCHERS`.
"""
