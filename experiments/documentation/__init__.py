"""What the documentation shows of the results, made from the committed rows.

``python -m experiments.documentation`` writes docs/results.md, docs/results/ and the blocks of all other pages
(``guides``); tests compare them with the rows. ``figures`` finds numbers that somebody typed.
"""
