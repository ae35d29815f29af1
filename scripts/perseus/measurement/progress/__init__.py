"""Report the progress of a measurement in messages, in a live view on the terminal, and as metrics
for Prometheus.

No result and no job depends on the reported progress.
"""
