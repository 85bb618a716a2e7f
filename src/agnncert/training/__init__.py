"""Training: the objective over all subgraphs, and the loop around it."""
