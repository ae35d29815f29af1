"""The machine that runs a job: cores, processes, GPUs, files and cleanup.

Knows nothing of a study. Provides cores to pin to, readings of /proc and NVML, and atomic writes.
"""
