"""Compare two studies: pair the quantities that both measured, and judge each pair
(docs/explanation/comparison.md).

The package reads folders or archives of results, and makes one table.
"""
