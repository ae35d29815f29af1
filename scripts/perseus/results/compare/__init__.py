"""Compare two studies: decide for each quantity that both studies measured whether it became better
or worse (docs/explanation/comparison.md).

The package reads the folders or archives of the two results, and makes one table.
"""
