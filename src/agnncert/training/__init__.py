"""Training: the objective over all subgraphs, and the loop around it."""

from agnncert.training.fit import Step, fit
from agnncert.training.objective import Weights

__all__ = ["Step", "Weights", "fit"]
