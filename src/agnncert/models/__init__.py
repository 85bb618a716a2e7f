"""Ready-made models: GCN, GraphSAGE, GAT, GIN, a residual GCN and an MLP, for nodes and for graphs.

They are stacks of PyTorch Geometric's layers, with its names of arguments. Each looks at a node only through the edges
that lead to it, as certificates need, and multiplies the features by its first weight matrix before it passes messages,
so that the many subgraphs of a certificate share that product.
"""
