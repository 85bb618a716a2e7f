"""How a graph is divided into subgraphs, and how far a change reaches into them."""
