"""Ready-made models: GCN, GraphSAGE, GAT, GIN, a residual GCN and an MLP, for nodes and for graphs.

They are stacks of PyTorch Geometric's layers, with its names of arguments. Each looks at a node only through the edges
that lead to it, as certificates need, and multiplies the features by its first weight matrix before it passes messages,
so that the many subgraphs of a certificate share that product.
"""

from agnncert.models.build import MODELS, build_from_config, build_model
from agnncert.models.bundled import pretrained
from agnncert.models.fallback import Fallback
from agnncert.models.gnn import GNN, ModelConfig
from agnncert.models.saved import load_model, save_model
from agnncert.models.scaling import Scaling

__all__ = [
    "GNN",
    "MODELS",
    "Fallback",
    "ModelConfig",
    "Scaling",
    "build_from_config",
    "build_model",
    "load_model",
    "pretrained",
    "save_model",
]
