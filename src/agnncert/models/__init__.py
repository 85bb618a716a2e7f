"""Ready-made models: GCN, GraphSAGE, GAT, GIN, a residual GCN and an MLP, for nodes and for graphs.

They are stacks of PyTorch Geometric's layers and use its names of arguments. Each depends on other nodes only through
incoming edges, as certificates need, and multiplies the features by its first weight matrix before message passing, so
that all subgraphs of a certificate share that product.
"""
