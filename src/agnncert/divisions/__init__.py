"""Divisions: how a graph is split into subgraphs, and how far a change reaches into them.

``base`` says what a division is; ``edge``, ``node`` and ``gnncert`` hold the built-in ones; ``named`` is the table of
their names. All are loaded on first use: the table, which commands and settings need, imports no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
