"""C and C++ functions as graphs of statements, and certificates in the attacker's unit: edited statements.

``graph`` turns the text of a function into a graph, ``read_functions`` every function below a folder. ``edits`` gives
the budget that so many inserted, deleted and replaced statements amount to. Parsing needs the extra ``code``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
