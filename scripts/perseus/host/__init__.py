"""Access the machine that runs a job: cores, processes, GPUs, files and cleanup.

The package chooses cores for pinning, reads /proc and NVML, and writes files atomically.
"""
