"""Access the machine that runs a job: its cores, processes, GPUs and files.

For example, the modules of this package choose the cores of a server, read /proc and NVIDIA's
management library, write files atomically, and remove what killed jobs have left.
"""
