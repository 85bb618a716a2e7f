"""C and C++ functions as graphs of statements, and certificates in the attacker's unit: edited statements.

``graph`` turns the text of a function into a graph, ``read_functions`` reads every function below a folder. ``edits``
gives the budget for a number of inserted, deleted and replaced statements. ``fit_detector`` fits a detector, ``scan``
applies it to all functions of a source tree. Names are loaded on first use.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
