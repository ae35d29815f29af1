"""Read and check the configuration of a study, and derive what Snakemake must do.

The input is a configuration file and a price list. The output is a list of cells (the smallest
units that Perseus measures), and one task (an object with all settings) for each Snakemake job.
"""
