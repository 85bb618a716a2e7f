"""Training: the objective over all subgraphs, and the loop around it."""

from agnncert.training.loop import Step, fit
from agnncert.training.node_objective import Weights

__all__ = ["Step", "Weights", "fit"]
