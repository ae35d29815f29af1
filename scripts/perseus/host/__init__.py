"""The machine that runs a job: its cores, processes, GPUs, files and what is left behind on it.

In: nothing of a study. Out: cores to pin to, readings of /proc and NVML, files that are whole.
"""
