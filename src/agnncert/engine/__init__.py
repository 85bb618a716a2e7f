"""From a model and a divided graph to votes: the prediction of the model on every subgraph."""
