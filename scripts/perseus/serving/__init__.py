"""Start servers or connect to remote servers, load their models, and explain their failures.

The input is a model repository and CPU cores. The result is a running server, all of whose models
are ready.
"""
