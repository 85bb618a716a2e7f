"""Studies: what the commands do, step by step, and the folders in which they leave their results.

``run`` is the runner that all of them call. ``settings`` and ``folder`` import no torch.
"""
