"""Report the progress of a measurement: messages, a live view on the terminal, and metrics for
Prometheus.

Results and jobs do not depend on the progress.
"""
