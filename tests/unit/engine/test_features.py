"""A stand-in for copied rows must be indistinguishable from them, in values and in gradients."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import agnncert as ac
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine import features as lazy_rows
from agnncert.engine.features import Features, LazyRows, SparseRows
from agnncert.engine.rounding_noise import RoundingNoise
from agnncert.engine.stand_in import on_copies
from tests.support.graphs import random_data
from tests.support.models import build

ROWS, WIDTH, OUT = 7, 4, 3
INDEX = torch.tensor([0, 0, 6, 3, 3, 1])


def matrix(sparse=False, seed=0):
    x = torch.randn(ROWS, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.where(torch.arange(WIDTH) == torch.arange(ROWS)[:, None] % 40, x, 0.0) if sparse else x


def weight(*shape, seed=1):
    return nn.Parameter(torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)))


W, B, V = weight(OUT, WIDTH), weight(OUT, seed=2), weight(WIDTH, OUT, seed=3)


class Doubling(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


def written(x):
    x.mul_(2)
    return F.linear(x, W)


def assigned(x):
    x[:, 0] = 5.0
    return x @ V


def viewed(x):
    x.view(-1)[0] = 7.0
    return F.linear(x, W)


def relu_kept(x):
    h = F.relu(x, inplace=True)
    return F.linear(x, W) + h.sum()


def written_through(path):
    def access(x):
        path(x)
        return F.linear(x, W)

    return access


ACCESS = {
    "written through data": written_through(lambda x: x.data.mul_(2)),
    "written through a view's data": written_through(lambda x: x.view(-1).data.mul_(2)),
    "written through a row's data": written_through(lambda x: next(iter(x)).data.mul_(2)),
    "written through numpy": written_through(lambda x: x.numpy().fill(2.0)),
    "written through the storage": written_through(lambda x: x.untyped_storage().fill_(0)),
    "linear": lambda x: F.linear(x, W, B),
    "linear without bias": lambda x: F.linear(x, W),
    "linear with keywords": lambda x: F.linear(input=x, weight=W, bias=B),
    "linear with a bias by keyword": lambda x: F.linear(x, W, bias=B),
    "module": lambda x: _lin(x),
    "matmul operator": lambda x: x @ V,
    "matmul from the left": lambda x: torch.ones(2, len(INDEX), dtype=x.dtype) @ x,
    "torch.matmul": lambda x: torch.matmul(x, V),
    "torch.mm": lambda x: torch.mm(x, V),
    "method mm": lambda x: x.mm(V),
    "matrix times vector": lambda x: x @ V[:, 0],
    "times itself": lambda x: x @ x.t(),
    "transposed": lambda x: x.T @ x,
    "addmm": lambda x: torch.addmm(B, x, V),
    "einsum": lambda x: torch.einsum("nf,fc->nc", x, V),
    "batched": lambda x: torch.bmm(x[None], V[None]),
    "fresh weight": lambda x: F.linear(x, 2 * W, B),
    "fresh bias": lambda x: F.linear(x, W, B + 1),
    "plain weight": lambda x: x @ V.detach(),
    "dropout off": lambda x: F.linear(F.dropout(x, 0.5, training=False), W),
    "dropout off by position": lambda x: F.dropout(x, 0.5, False) @ V,
    "alpha dropout off": lambda x: F.alpha_dropout(x, 0.5, training=False),
    "sum": lambda x: x.sum(),
    "slice": lambda x: x[:, 1:3],
    "mask": lambda x: x[x[:, 0] > 0],
    "index": lambda x: x[torch.tensor([2, 0])],
    "iteration": lambda x: torch.stack([row.sin() for row in x]),
    "unbind": lambda x: torch.stack(x.unbind(1)),
    "cat in a list": lambda x: torch.cat([x, x * 2], dim=-1),
    "stack in a tuple": lambda x: torch.stack((x, x)),
    "where": lambda x: torch.where(x > 0, x, -1.0),
    "view": lambda x: x.view(-1, 2),
    "reshape": lambda x: x.reshape(2, -1),
    "contiguous": lambda x: x.contiguous() + x.stride(0),
    "type": lambda x: x.float(),
    "to": lambda x: x.to(torch.float32),
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "deepcopy": lambda x: copy.deepcopy(x),
    "numpy": lambda x: torch.from_numpy(x.detach().numpy()),
    "list": lambda x: torch.tensor(x.tolist()),
    "zeros like": lambda x: torch.zeros_like(x) + x.new_ones(1),
    "normalize": lambda x: F.normalize(x),
    "layer norm": lambda x: F.layer_norm(x, (WIDTH,)),
    "softmax": lambda x: x.softmax(-1),
    "embedding": lambda x: F.embedding(x[:, 0].abs().long() % 3, V),
    "bilinear": lambda x: F.bilinear(x, x, W.view(1, OUT, WIDTH)[:, :, None].expand(1, OUT, WIDTH, WIDTH)[0].contiguous()),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "sparse": lambda x: x.to_sparse() @ V,
    "custom function": lambda x: Doubling.apply(x),
    "index_add": lambda x: torch.zeros(2, WIDTH, dtype=x.dtype).index_add(0, torch.tensor([0, 1, 0, 1, 0, 1]), x),
    "out argument": lambda x: torch.add(x, 1, out=torch.empty(len(INDEX), WIDTH, dtype=x.dtype)),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(lambda y: F.linear(y, W).sin(), x, use_reentrant=False),
    "written in place": written,
    "assigned in place": assigned,
    "written through a view": viewed,
    "relu in place, used on": relu_kept,
}  # fmt: skip

_lin = nn.Linear(WIDTH, OUT).double()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("access", ACCESS)
def test_every_way_to_use_it_gives_what_copied_rows_give(access, sparse):
    x = matrix()
    features = Features(x, SparseRows(x) if sparse else None)
    expected, found = ACCESS[access](x[INDEX]), ACCESS[access](features.rows(INDEX))
    assert not isinstance(found, LazyRows) or access.startswith("dropout")
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(x, matrix()), "the matrix itself is never written to"


@pytest.mark.parametrize("access", ACCESS)
def test_every_way_to_use_it_with_hidden_rows(access):
    x, blank = matrix(), torch.tensor([False, True, False, True, False, False])
    expected = ACCESS[access](torch.where(blank[:, None], 0.0, x[INDEX]))
    torch.testing.assert_close(ACCESS[access](Features(x).rows(INDEX, blank)), expected, rtol=1e-12, atol=1e-12)


def test_it_answers_questions_like_a_tensor_without_copying_rows():
    x = Features(matrix()).rows(INDEX)
    assert isinstance(x, torch.Tensor)
    assert (x.shape, x.size(0), x.size(), x.dim(), x.ndim, len(x), x.numel()) == ((6, 4), 6, (6, 4), 2, 2, 6, 24)
    assert (x.dtype, x.device, x.layout) == (torch.float64, torch.device("cpu"), torch.strided)
    assert x.is_floating_point()
    assert not x.requires_grad
    assert not x.is_sparse
    assert x._copied is None


def test_a_layer_is_applied_once_to_the_matrix_however_often_rows_are_asked_for(monkeypatch):
    features, sizes, plain = Features(matrix()), [], Features._linear
    monkeypatch.setattr(Features, "_linear", lambda self, *layer: sizes.append(len(self.x)) or plain(self, *layer))
    for start in range(4):
        _lin(features.rows(INDEX[start:]))
        _lin(features.rows(INDEX[start:], torch.ones(6 - start, dtype=torch.bool)))
    assert sizes == [ROWS, ROWS + 1]


def test_products_with_fresh_weights_are_not_kept():
    features = Features(matrix())
    for _ in range(5):
        F.linear(features.rows(INDEX), 2 * W, B)
        features.rows(INDEX) @ W.t()
        features.rows(INDEX) @ V
    assert len(features._projections) == 1


def test_operations_below_the_python_level_see_copied_rows():
    x = Features(matrix()).rows(INDEX)
    with torch._C.DisableTorchFunctionSubclass():
        assert torch.equal(torch.ops.aten.mul.Tensor(x, 2.0), 2 * matrix()[INDEX])
    assert torch.equal(on_copies(torch.add, (x, x), {}), 2 * matrix()[INDEX])


def test_rows_are_compressed_only_where_few_are_not_zero():
    dense, empty = torch.ones(10, 10), torch.zeros(10, 10)
    tenth = empty.clone().fill_diagonal_(1.0)
    assert SparseRows.of(dense) is None
    assert SparseRows.of(torch.empty(0, 3)) is None
    for x in (empty, tenth):
        compressed = SparseRows.of(x)
        assert compressed is not None
        assert torch.equal(compressed.times(dense), x @ dense)


# Gradients


def network(x):
    hidden = F.linear(x, W, B).tanh() + (x @ V).sin() + F.linear(x, W) * x[:, :OUT]
    return (hidden**2).sum()


@pytest.mark.parametrize(
    "blank", [None, torch.tensor([True, False, False, True, False, True])], ids=["plain", "hidden"]
)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_gradients_are_those_of_copied_rows(sparse, cut, blank):
    x = matrix(sparse)
    rows = x[INDEX] if blank is None else torch.where(blank[:, None], 0.0, x[INDEX])
    expected = torch.autograd.grad(network(rows) + network(rows[:3]), [W, B, V])
    features = Features(x, SparseRows(x) if sparse else None, cut=cut)
    for parameter in (W, B, V):
        parameter.grad = None
    shorter = None if blank is None else blank[:3]
    if cut:  # several backward passes, then one through the product
        network(features.rows(INDEX, blank)).backward()
        network(features.rows(INDEX[:3], shorter)).backward()
        features.finish_backward()
    else:
        (network(features.rows(INDEX, blank)) + network(features.rows(INDEX[:3], shorter))).backward()
    for parameter, gradient in zip((W, B, V), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-10, atol=1e-10)
        parameter.grad = None


@pytest.mark.parametrize("kind", ["gcn", "sage"])
def test_a_noisy_projection_that_is_not_kept_moves_scores_as_one_that_is(monkeypatch, kind):
    data, model = random_data(5, smallest=12, largest=12, density=0.4), build(kind, "node").eval()
    kept = ac.certify(model, data, EdgeCentric(5)).evidence.votes
    monkeypatch.setattr(lazy_rows, "MOST_NOISY_ROWS_KEPT", 0)
    anew = ac.certify(model, data, EdgeCentric(5)).evidence.votes
    assert np.array_equal(kept.vote, anew.vote)
    assert np.array_equal(kept.stable, anew.stable)
    features, lin = Features(matrix()).with_noise(RoundingNoise(1e-3, 1)), weight(OUT, WIDTH)
    with torch.no_grad():
        assert torch.allclose(features.projected(INDEX, lin), features.project(lin)[INDEX])
