"""Progress of a measurement: messages, a live view on the terminal, and metrics for Prometheus.

No result is made of it, and so no job depends on it.
"""
