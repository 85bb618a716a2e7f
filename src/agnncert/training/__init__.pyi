from .loop import Step as Step
from .loop import fit as fit
from .settings import Weights as Weights
