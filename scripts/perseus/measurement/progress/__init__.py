"""Report the progress of a measurement: messages, a live view on the terminal, and metrics for
Prometheus.

The progress changes no results, and no jobs.
"""
