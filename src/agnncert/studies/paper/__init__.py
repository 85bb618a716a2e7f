"""The paper's experiments: the runs they consist of, a row of results for each, and the page made from the rows.

Names are loaded on first use: figures and pages need no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
