"""No error of rounding exceeds its bound, and a vote that a bound decides is that of exact arithmetic."""

from fractions import Fraction

import pytest
import torch
from torch_geometric.data import Data

from agnncert.engine.bounded_model import BoundedModel
from agnncert.engine.error_bounds import DOUBLE, SINGLE
from agnncert.models.build import build_model
from tests.soundness.oracle.exact_layers import exact_logits
from tests.support.bounded import largest_ratio


@pytest.mark.parametrize("first", range(0, 400, 40))
def test_no_error_exceeds_its_bound_on_random_models_and_graphs(first):
    """Truth is what float64 computes, with its own bound around it; the module itself lies in there."""
    for seed in range(first, first + 40):
        assert largest_ratio(seed) <= 1.0, seed


@pytest.mark.parametrize("name", ["gcn", "sage", "gin", "mlp"])
@pytest.mark.parametrize("size", [1.0, 1e6, 1e-6])
def test_no_error_exceeds_its_bound_in_exact_arithmetic(name, size):
    """Fractions; roots to 120 digits."""
    for seed in range(4):
        random = torch.Generator().manual_seed(seed)
        x = size * torch.randn(6, 5, generator=random)
        if seed % 2:
            x[:, 1] = -x[:, 0] + 1e-3 * size * x[:, 1]  # terms that nearly cancel
        edges = torch.unique(torch.randint(0, 6, (2, 14), generator=random), dim=1)
        data = Data(x=x, edge_index=edges, y=torch.arange(6) % 3)
        model = build_model(name, data, hidden_channels=4, num_layers=2, out_channels=3, seed=seed).eval()
        if seed % 2:
            for weight in model.convs[0].parameters():
                if weight.dim() == 2 and weight.size(1) == 5:
                    weight.data[:, 1] = weight.data[:, 0]
        truth = exact_logits(model, x, edges)
        for precision in (SINGLE, DOUBLE):
            logits = BoundedModel(model.to(precision.dtype), precision)(x.to(precision.dtype), edges, {})
            for row, exact, bound in zip(logits.values.tolist(), truth, logits.bounds.error.tolist(), strict=True):
                error = max(abs(Fraction(a) - b) for a, b in zip(row, exact, strict=True))
                assert error <= Fraction(bound)
                assert bound < 1e-4 * max(1.0, float(x.abs().max()))  # and it says something
