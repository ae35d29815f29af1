"""Two studies held against each other: what both measured, pair by pair, better, worse or neither
(docs/method.md, "Two results compared"). In come folders or archives of results, out comes a table.
"""
