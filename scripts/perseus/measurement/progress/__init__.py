"""How the measurement of a cell gets on: in words, on a terminal, and for Prometheus.

No result is made of it, and so no job depends on it.
"""
