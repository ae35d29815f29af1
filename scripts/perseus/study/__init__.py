"""Read and check the definition of a study, and derive its cells, files and tasks.

The input is a configuration file and a price list. The output is the cells of the study (the units
of measurement), and one task (typed settings) for each Snakemake job.
"""
