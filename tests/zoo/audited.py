"""Models of the zoos, built from a seed and audited."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from agnncert.auditing.model_audit import audit


def built(make: Callable[[], nn.Module]) -> nn.Module:
    """Returns the model that ``make`` builds from seed 0; the caller's random numbers stay as they were."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().eval()


def report_on(make: Callable[[], nn.Module], **options: Any) -> Any:
    """Audits the model that ``make`` builds, whatever it warns about."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return audit(built(make), **options)
