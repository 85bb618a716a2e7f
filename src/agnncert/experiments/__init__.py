"""The paper's experiments: which runs they are made of, how a run becomes a row, what is drawn from the rows.

Names are loaded on first use: figures and pages need no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agnncert.experiments.agreement import compare_results as compare_results
    from agnncert.experiments.figures import draw_figures as draw_figures
    from agnncert.experiments.page import write_page as write_page
    from agnncert.experiments.reproduction import reproduce as reproduce
    from agnncert.experiments.results import Results as Results

_OWNER = {
    "Results": "results", "compare_results": "agreement", "draw_figures": "figures", "reproduce": "reproduction",
    "write_page": "page",
}  # fmt: skip

__all__ = sorted(_OWNER)


def __getattr__(name: str) -> Any:
    if name not in _OWNER:
        raise AttributeError(f"module 'agnncert.experiments' has no attribute '{name}'")
    return getattr(importlib.import_module(f"agnncert.experiments.{_OWNER[name]}"), name)
