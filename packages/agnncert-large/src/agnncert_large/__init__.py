"""Graphs that are larger than memory, or than one machine.

- ``disk``: graphs as folders of memory-mapped arrays
- ``parquet``: Parquet tables that do not fit into memory, converted into such folders
- ``sorted_pairs``: edges that a database sorts
- ``cluster``: workers on a Ray cluster
- ``clusters``: training on parts of a graph (Cluster-GCN)
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
