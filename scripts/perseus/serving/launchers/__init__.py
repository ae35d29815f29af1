"""Start servers or connect to remote servers, with one module per launcher.

Each module has the name of its launcher, and defines the function `serve` (see the docstring of
`launch`). `study.launchers.LAUNCHERS` states the properties of the launchers.
"""
