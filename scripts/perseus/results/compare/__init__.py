"""Compare two studies: decide for each quantity that both studies measured whether it became better
or worse (docs/explanation/comparison.md).

The package reads the results of each study from a folder or an archive, and makes the table
`comparison`.
"""
