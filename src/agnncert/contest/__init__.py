"""Contests: an open form for deterministic certificates that anybody can write and a small program can check.

Read in this order: ``form`` (scores, units, moves, limits), ``leads`` (the one inequality), ``checker`` (statements),
``file`` (JSON). These four need nothing but Python, import nothing that proves, and search for nothing. ``plays`` says
what a refutation is. ``search`` looks for prices and for plays; no verdict that something holds depends on it.
"""
