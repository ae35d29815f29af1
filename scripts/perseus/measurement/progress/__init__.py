"""Progress of a measurement: messages, a live view on the terminal, and metrics for Prometheus.

No result depends on the progress, and no job.
"""
