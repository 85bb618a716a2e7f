"""Runs: what the command line does, step by step, and the folder in which each run leaves its traces.

The modules ``settings``, ``folder`` and ``environment`` import no torch; the steps themselves do.
"""
