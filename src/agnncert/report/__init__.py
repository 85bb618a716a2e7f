"""The report: one HTML file that shows what is proved, and the same figures and tables for papers.

Names are loaded on first use: tables need neither jinja2 nor matplotlib.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
