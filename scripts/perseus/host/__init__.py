"""The machine that runs a job: cores, processes, GPUs, files and cleanup.

The package is independent of a study. It provides cores for pinning, readings of /proc and NVML,
and atomic writes.
"""
