"""Bounds on rounding: with one made too small on purpose, the check that guards it turns red."""

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from agnncert.engine import (
    bounded_arcs,
    bounded_attention,
    bounded_blocks,
    bounded_model,
    bounded_rows,
    error_bounds,
    exact_votes,
)
from agnncert.engine.bounded_model import BoundedModel
from agnncert.engine.bounded_rows import BoundedRows
from agnncert.engine.error_bounds import DOUBLE, SINGLE, Bounds
from agnncert.models.build import build_model
from tests.support.bounded import largest_ratio
from tests.support.hubs import hub

# The checks


def errors_stay_below(model: Any, x: torch.Tensor, edge_index: torch.Tensor) -> None:
    """No error in float32 is larger than its bound; float64 is the truth, far closer than these errors."""
    truth = BoundedModel(copy.deepcopy(model).double(), DOUBLE)(x.double(), edge_index, {}).values
    found = BoundedModel(model, SINGLE)(x, edge_index, {})
    error = (found.values.double() - truth).abs().amax(dim=1)
    assert bool((error <= found.bounds.error).all())


def equal_messages() -> None:
    """A sum of 10,000 equal terms drifts in one direction."""
    for weight in (1003.7, 1011.3, 1020.1):
        case = hub(10_000, weight, known=True)
        errors_stay_below(case.model, case.data.x, case.data.edge_index)


@torch.no_grad()
def network(depth: int, width: int = 64, norm: str | None = None, gain: float = 3.0, act: str = "relu") -> nn.Module:
    """A network whose hidden layers are large."""
    data = Data(x=torch.ones(2, 8), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.arange(2))
    model = build_model("mlp", data, num_layers=depth, hidden_channels=width, norm=norm, act=act).eval()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.mul_(gain)
    return model


def many_rows(model: nn.Module, size: float = 1.0, shift: float = 0.0) -> None:
    x = size * torch.randn(3000, 8, generator=torch.Generator().manual_seed(0)) + shift
    errors_stay_below(model, x, torch.zeros(2, 0, dtype=torch.int64))


def one_layer() -> None:
    many_rows(network(1))


def two_layers() -> None:
    many_rows(network(2))


def equal_products() -> None:
    """A product of 16,384 equal terms, of which the sum drifts."""
    model = network(2, width=16_384)
    with torch.no_grad():
        model.convs[0].weight.fill_(0.1)
        model.convs[0].bias.zero_()
        model.convs[1].weight.fill_(0.1)
    x = torch.linspace(0.1, 1.0, 20)[:, None].repeat(1, 8)
    errors_stay_below(model, x, torch.zeros(2, 0, dtype=torch.int64))


def three_layers() -> None:
    many_rows(network(3, gain=30.0))


def flat_rows() -> None:
    """Rows whose entries hardly differ from each other: a norm of rows magnifies their errors."""
    model = network(2, norm="layer_norm", gain=1.0)
    with torch.no_grad():
        model.convs[0].weight.mul_(1e-4)
        model.convs[0].bias.fill_(100.0)
        model.convs[0].bias.add_(1e-3 * torch.randn(64, generator=torch.Generator().manual_seed(0)))
    many_rows(model)


def fixed_norm() -> None:
    model = network(2, norm="batch_norm")
    with torch.no_grad():
        model.norms[0].running_mean.fill_(-1e4)
        model.norms[0].running_var.fill_(1e-4)
    many_rows(model)


def cancelling_features() -> None:
    """Features of 2**60 cancel, and even float64 loses what stands between them."""
    model = network(1)
    with torch.no_grad():
        model.convs[0].weight.fill_(1.0)
        model.convs[0].bias.zero_()
    x = torch.tensor([[2.0**60, 1.0, -(2.0**60), 0.0, 0.0, 0.0, 0.0, 0.0]])
    found = BoundedModel(model, SINGLE)(x, torch.zeros(2, 0, dtype=torch.int64), {})
    error = (found.values.double() - 1.0).abs().amax(dim=1)
    assert bool((error <= found.bounds.error).all())


def random_attention() -> None:
    for seed in (1, 12, 14, 21, 31, 33):  # of attention, see ``random_case``
        assert largest_ratio(seed) <= 1.0


def votes_of_parts() -> None:
    """Rows that float64 decides from a part of the graph vote as in the whole graph."""
    edges = torch.tensor([[0, 1, 2, 3, 4, 4, 4], [1, 2, 3, 5, 0, 1, 2]])
    data = Data(x=torch.eye(6), edge_index=edges, y=torch.arange(6) % 2)
    model = build_model("gcn", data, num_layers=3, hidden_channels=8).double().eval()
    whole = BoundedModel(model, DOUBLE)(data.x.double(), edges, {}).values
    for row in range(6):
        rows = torch.arange(6) == row
        part = exact_votes._part_of(
            exact_votes.Inputs(data.x.double(), edges, {}, None), rows, exact_votes.hops_of(model)
        )
        found = BoundedModel(model, DOUBLE)(*part.inputs).values[part.rows]
        assert torch.allclose(found, whole[rows], rtol=1e-12)


def leads_of_one_bound() -> None:
    """A lead of one and a half times the bound is too little: both scores may move."""
    values = torch.tensor([[1.0, 0.0]])
    bounds = Bounds(torch.ones(1, dtype=torch.float64), torch.full((1,), 1 / 1.5, dtype=torch.float64))
    margin = exact_votes._Margin(0.0, 0)
    rows = bounded_rows.BoundedRows(values, bounds)
    assert margin.in_single(rows).by.tolist() == [exact_votes.LEFT]
    assert margin.in_double(rows).by.tolist() == [exact_votes.UNSTABLE]


def rows_in_blocks() -> None:
    """Rows that are computed some at a time are those that are computed all at once."""
    for name in ("gcn", "sage", "gin"):
        case = star_and_ring(name)
        whole = BoundedModel(case.model, SINGLE)(case.x, case.edge_index, {})
        rows_of_blocks(case.model, case.x, case.edge_index, whole)


class Graph(NamedTuple):
    model: Any
    x: torch.Tensor
    edge_index: torch.Tensor


def star_and_ring(name: str) -> Graph:
    """A ring of 20 rows, of which two send to 20 others that send nothing."""
    ring = torch.arange(20)
    leaves = torch.arange(20, 40)
    edges = torch.stack([torch.cat([ring, leaves % 2]), torch.cat([(ring + 1) % 20, leaves])])
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    data = Data(x=x, edge_index=edges, y=torch.arange(40) % 3)
    return Graph(build_model(name, data, hidden_channels=8, num_layers=3, seed=1).eval(), x, edges)


def rows_of_blocks(model: Any, x: torch.Tensor, edge_index: torch.Tensor, whole: BoundedRows) -> None:
    values = torch.full_like(whole.values, torch.nan)
    error = torch.full_like(whole.bounds.error, torch.nan)

    def finish(rows, logits):
        values[rows] = logits.values
        error[rows] = logits.bounds.error

    BoundedModel(model, SINGLE).in_blocks(x, edge_index, {}, None, finish, block_rows=7)
    assert bool(((values - whole.values).abs().amax(dim=1).double() <= 2 * whole.bounds.error).all())
    assert torch.allclose(error, whole.bounds.error, rtol=1e-3)


def each_number() -> None:
    """Activations of all sizes of numbers, those included from which on an exponential overflows."""
    x = torch.cat([torch.linspace(-120, 120, 20_001), torch.logspace(-40, 30, 2_000)])
    x = torch.cat([x, -x])[:, None]
    for layer in (nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.GELU(), nn.SiLU(), nn.Tanh()):
        given = BoundedRows(x, Bounds(x[:, 0].abs().double(), torch.zeros(len(x), dtype=torch.float64)))
        found = BoundedModel(layer, SINGLE).of_rows(given)
        error = (found.values.double() - layer(x.double())).abs().amax(dim=1)
        assert bool((error <= found.bounds.error).all()), layer


def slopes() -> None:
    """No activation moves two numbers further apart than its slope says."""
    x = torch.linspace(-30, 30, 600_001, dtype=torch.float64)
    for layer in (nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.GELU(), nn.SiLU(), nn.Tanh()):
        y = layer(x)
        slope = bounded_model._activation_of(layer).slope
        assert float((y.diff() / x.diff()).abs().max()) <= slope
        assert bool((y.abs() <= x.abs()).all())


def bounds_along_edges() -> None:
    """Bounds that are summed in float32 are at least their sum."""
    arcs = bounded_arcs.Arcs.of(torch.stack([torch.arange(3000), torch.zeros(3000, dtype=torch.int64)]), 3000)
    for size in torch.linspace(0.1, 1.0, 10, dtype=torch.float64):
        bounds = Bounds(size.repeat(3000), size.repeat(3000))
        found = arcs.spread(bounded_arcs.Sent.of(torch.zeros(3000, 1), bounds).bounds)
        assert float(found.size[0]) >= 3000 * float(size)
        assert float(found.error[0]) >= 3000 * float(size)
    small = Bounds(torch.ones(3000, dtype=torch.float64), torch.full((3000,), 2.0**-151, dtype=torch.float64))
    assert float(arcs.spread(bounded_arcs.Sent.of(torch.zeros(3000, 1), small).bounds).error[0]) >= 3000 * 2.0**-151


CHECKS = [
    equal_messages,
    one_layer,
    two_layers,
    equal_products,
    three_layers,
    flat_rows,
    fixed_norm,
    cancelling_features,
    random_attention,
    votes_of_parts,
    leads_of_one_bound,
    rows_in_blocks,
    each_number,
    slopes,
    bounds_along_edges,
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_checks_pass_on_the_code_as_it_is(check):
    check()


# The mistakes


def count_few_terms(patch):
    plain = error_bounds.after_sum
    few = error_bounds.gamma(12, SINGLE)
    patch.setattr(error_bounds, "after_sum", lambda parts, relative, *rest: plain(parts, few, *rest))


def forget_the_error_of_a_product(patch):
    plain = error_bounds.after_linear
    patch.setattr(error_bounds, "after_linear", lambda bounds, terms, *rest: plain(bounds, 0, *rest))


def forget_to_carry_errors_on(patch):
    plain = error_bounds.after_linear

    def broken(bounds, terms, norms, precision):
        return plain(bounds._replace(error=torch.zeros_like(bounds.error)), 0, norms, precision)

    patch.setattr(error_bounds, "after_linear", broken)


def take_small_norms(patch):
    plain = bounded_model.weight_norms

    def broken(weight, is_output):
        norms = plain(weight, is_output)
        return norms._replace(signed=norms.signed / 1000, absolute=norms.absolute / 1000)

    patch.setattr(bounded_model, "weight_norms", broken)


def take_float32_for_exact(patch):
    plain = error_bounds.gamma
    for module in (error_bounds, bounded_arcs):
        patch.setattr(module, "gamma", lambda terms, precision: plain(terms, DOUBLE))


def forget_the_last_rounding(patch):
    patch.setattr(bounded_rows, "after_rounding", lambda product, width, precision: product)
    patch.setattr(error_bounds, "after_bias", lambda bounds, bias, width, precision: bounds)


def forget_cancellation_in_float64(patch):
    plain = bounded_rows.after_linear
    patch.setattr(bounded_rows, "after_linear", lambda bounds, terms, *rest: plain(bounds, 0, *rest))


def norm_without_magnifying(patch):
    plain = error_bounds.after_layer_norm

    def broken(bounds, statistics, settings, width, precision):
        wide = statistics._replace(deviation=torch.ones_like(statistics.deviation) * 100)
        return plain(bounds, wide, settings, width, precision)

    patch.setattr(error_bounds, "after_layer_norm", broken)


def fixed_norm_without_its_mean(patch):
    plain = error_bounds.after_affine
    patch.setattr(error_bounds, "after_affine", lambda bounds, factor, shift, *rest: plain(bounds, factor, 0.0, *rest))


def attention_as_if_scores_were_exact(patch):
    patch.setattr(bounded_attention, "gamma", lambda terms, precision: torch.tensor(0.0, dtype=torch.float64))
    plain = bounded_attention._head_bounds

    def broken(*args):
        bounds = plain(*args)
        return bounds._replace(error=0 * bounds.error)

    patch.setattr(bounded_attention, "_head_bounds", broken)


def attention_to_nothing(patch):
    plain = bounded_attention._projections

    def broken(*args):
        found = plain(*args)
        return found._replace(
            moved=0 * found.moved,
            local=0 * found.local,
            computed=0 * found.computed,
            sent=Bounds(0 * found.sent.size, 0 * found.sent.error),
        )

    patch.setattr(bounded_attention, "_projections", broken)


def one_hop_less(patch):
    plain = exact_votes.hops_of
    patch.setattr(exact_votes, "hops_of", lambda model: plain(model) - 1)


def once_the_bound(patch):
    patch.setattr(exact_votes._Margin, "_bound", lambda self, logits: logits.bounds.error / 2)


def hear_the_first_layer_only(patch):
    plain = bounded_blocks._evaluate_in_step

    def broken(*args, **kwargs):
        sent = plain(*args, **kwargs)
        return [sent[0]] * len(sent) if sent[0].values.shape == sent[-1].values.shape else [sent[0], sent[0], sent[-1]]

    patch.setattr(bounded_blocks, "_evaluate_in_step", broken)


def mistake_rows_for_positions(patch):
    plain = bounded_blocks._of_rows
    patch.setattr(
        bounded_blocks, "_of_rows", lambda arcs, rows, position, size: plain(arcs, rows, position.roll(1), size)
    )


def activations_without_rounding(patch):
    patch.setattr(error_bounds, "SILU", error_bounds.RELU)


def forget_that_silu_is_steep(patch):
    patch.setattr(error_bounds, "SILU", replace(error_bounds.SILU, slope=1.0))


def sum_bounds_without_rounding_up(patch):
    patch.setattr(bounded_arcs.Arcs, "_rounded_up", property(lambda self: torch.ones(self.num_rows)))


def forget_small_bounds(patch):
    patch.setattr(bounded_arcs, "SINGLE", replace(SINGLE, tiny=0.0))


MISTAKES = [
    (count_few_terms, equal_messages),
    (forget_the_error_of_a_product, equal_products),
    (forget_to_carry_errors_on, three_layers),
    (take_small_norms, two_layers),
    (take_float32_for_exact, equal_messages),
    (forget_the_last_rounding, one_layer),
    (forget_cancellation_in_float64, cancelling_features),
    (norm_without_magnifying, flat_rows),
    (fixed_norm_without_its_mean, fixed_norm),
    (attention_as_if_scores_were_exact, random_attention),
    (attention_to_nothing, random_attention),
    (one_hop_less, votes_of_parts),
    (once_the_bound, leads_of_one_bound),
    (hear_the_first_layer_only, rows_in_blocks),
    (mistake_rows_for_positions, rows_in_blocks),
    (activations_without_rounding, each_number),
    (forget_that_silu_is_steep, slopes),
    (sum_bounds_without_rounding_up, bounds_along_edges),
    (forget_small_bounds, bounds_along_edges),
]


@pytest.mark.parametrize(("mistake", "check"), MISTAKES)
def test_a_bound_made_too_small_is_caught(mistake, check, monkeypatch):
    mistake(monkeypatch)
    with pytest.raises(AssertionError):
        check()
