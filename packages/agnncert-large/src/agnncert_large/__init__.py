"""Graphs that are larger than memory, or than one machine.

- ``disk``: graphs as folders of memory-mapped arrays
- ``parquet``: Parquet tables that do not fit into memory, converted into such folders
- ``pair_files``: edges sorted on disk
- ``cluster``: workers on a Ray cluster
- ``clusters``: training on parts of a graph (Cluster-GCN)
"""

from agnncert_large.cluster import Ray
from agnncert_large.disk import open_graph, write_graph
from agnncert_large.parquet import convert_parquet

__version__ = "0.1.0"
__all__ = ["Ray", "convert_parquet", "open_graph", "write_graph"]
