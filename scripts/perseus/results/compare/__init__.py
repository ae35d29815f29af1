"""Two studies held against each other: what both measured, pair by pair, better, worse or neither
(docs/explanation/comparison.md). In come folders or archives of results, out comes a table.
"""
