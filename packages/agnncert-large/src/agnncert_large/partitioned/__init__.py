"""Graphs in parts: on disk or in object storage by the groups of a division, so that no worker holds all of it.

- ``places``: folders and object storage
- ``graph``: ``PartitionedGraph``, the manifest and its parts
- ``planning``: cuts votes into tasks that fit into memory; ``voting``, ``counting``: what workers do
- ``writing``: writes parts; ``from_data``, ``from_tables``: from a graph in memory, and from tables by DuckDB
"""
