"""Report the progress of a measurement: messages, a live view on the terminal, and metrics for
Prometheus.

No result and no job depends on the reported progress.
"""
