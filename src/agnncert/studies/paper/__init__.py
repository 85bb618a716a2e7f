"""The paper's experiments: which runs they are made of, how a run becomes a row, what is drawn from the rows.

Names are loaded on first use: figures and pages need no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
