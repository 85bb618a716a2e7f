"""Ready-made models: GCN, GraphSAGE, GAT, GIN, a residual GCN and an MLP, for nodes and for graphs.

Thin over PyTorch Geometric's layers and its argument names. Every one of them is local, as the certificates
need, and multiplies the features by its first weight matrix before it passes messages, so that a
certificate's many subgraphs share that product.
"""

from agnncert.models.build import MODELS, build_from_config, build_model
from agnncert.models.gnn import GNN, ModelConfig
from agnncert.models.saved import load_model, save_model

__all__ = ["GNN", "MODELS", "ModelConfig", "build_from_config", "build_model", "load_model", "save_model"]
