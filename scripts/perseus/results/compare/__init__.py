"""Compare two studies: decide for each quantity of both studies whether it became better or worse
(docs/explanation/comparison.md).

The package reads folders or archives of results, and makes one table.
"""
