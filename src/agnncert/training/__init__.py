"""Training: the objective over all subgraphs, and the loop around it.

Names are loaded on first use, so that the command line can read ``settings`` without importing torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
