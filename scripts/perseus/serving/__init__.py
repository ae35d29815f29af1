"""Start servers or connect to remote servers, load their models, and explain their failures.

Given a model repository and CPU cores, this package returns a running server whose models are all
ready.
"""
