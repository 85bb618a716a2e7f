"""Ready-made models: GCN, GraphSAGE, GAT, GIN, a residual GCN and an MLP, for nodes and for graphs.

They are stacks of PyTorch Geometric's layers and use its names of arguments. Each depends on other nodes only through
incoming edges, as certificates need. Features enter each through a linear map before any message is passed, so that all
subgraphs of a certificate share that product.
"""
