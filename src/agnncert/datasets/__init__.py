"""Graphs with labels and splits: the paper's datasets, two that ship with scikit-learn, and a user's own tables.

``load_dataset`` returns a ``Data`` (node classification) or a ``GraphSet`` (graph classification). Names are
loaded on first use: ``catalog`` alone, which a listing of the datasets needs, imports no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
