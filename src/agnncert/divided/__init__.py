"""Divisions as a defence: a graph is divided into subgraphs, a model votes on each, and a voting rule adds them up."""
