"""What the documentation shows of the results: one page, its pictures and its tables, made from the committed rows.

``python -m experiments.documentation`` writes docs/results.md and docs/results/; a test compares them with the rows.
"""
