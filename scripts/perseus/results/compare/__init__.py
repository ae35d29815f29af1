"""Compare two studies: pair the quantities that both measured, and judge each pair
(docs/explanation/comparison.md).

Reads folders or archives of results, and makes a table.
"""
