"""SampleEvidence: what it answers, its file form, and that it needs no torch."""

import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from agnncert.certificates.budget import Budget, Prices
from agnncert.errors import CertificateError, SettingsError
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.samples import TOGETHER, SampleEvidence

SELECTION = np.array([[10, 0, 0], [6, 4, 0], [0, 10, 0]])
ESTIMATION = np.array([[10_000, 0, 0], [5010, 4980, 10], [300, 9700, 0]])


def evidence(noise=None, **changes):
    fields = {"method": "rs", "selection": SELECTION, "estimation": ESTIMATION, "alpha": 0.01, "seed": 7}
    return SampleEvidence(noise=noise or FlipNoise(p_add=0.2, p_delete=0.2), **(fields | changes))


def test_labels_radii_and_abstention():
    label, radius = evidence().label_and_radius()
    assert label.tolist() == [0, 0, 1]
    assert radius[1] == -1
    assert radius[0] > radius[2] >= 1


def test_the_radius_and_holds_tell_the_same_story():
    found = evidence()
    _, radius = found.label_and_radius()
    for size in range(8):
        assert found.holds(Budget(add_edges=size)).tolist() == (radius >= size).tolist()


def test_all_targets_together_spend_alpha_on_all_of_them():
    alone = evidence(selection=SELECTION[[0]], estimation=ESTIMATION[[0]], alpha=0.01 / 3)
    assert evidence(scope=TOGETHER).bounds.top[0] == alone.bounds.top[0]
    assert evidence(scope=TOGETHER).bounds.top[0] < evidence().bounds.top[0]


def test_targets_broken_are_those_not_certified_at_the_error_probability_of_all_together():
    each, together = evidence(), evidence(scope=TOGETHER)
    for size in range(8):
        budget = Budget(delete_edges=size)
        assert each.broken_at_most(budget) == int((~together.holds(budget)).sum())
    assert each.broken_at_most(Budget(), among=np.array([True, False, True])) == 0
    assert each.broken_at_most(Budget()) == 1


def test_one_attacked_graph_of_many_breaks_one_target():
    assert evidence(task="graph").broken_at_most(Budget(add_edges=99)) == 1
    assert evidence(task="graph").broken_at_most(Budget(), among=np.array([True, False, True])) == 0


def test_the_largest_amount_comes_from_the_same_test():
    bi = evidence(DeletionNoise(0.8, 0.9), method="bi-rs")
    largest = bi.max_certified("inject_nodes", Budget(edges_per_injected=5))
    assert largest.tolist() == bi.label_and_radius()[1].tolist()
    assert bi.max_certified("inject_nodes", Budget(edges_per_injected=0))[0] == math.inf
    assert bi.max_certified("add_edges", Budget()).tolist() == [0, -1, 0]


def test_flips_are_certified_in_their_own_unit():
    grid = evidence(FlipNoise(0.01, 0.4, 0.01, 0.6, num_features=100), method="sparse-rs")
    assert grid.holds_flips(delete_edges=1, delete_entries=1)[0]
    assert not grid.holds(Budget(change_features=1)).any()
    with pytest.raises(SettingsError, match="does not flip"):
        evidence(DeletionNoise(0.8, 0.9), method="bi-rs").holds_flips(add_edges=1)


@pytest.mark.parametrize("noise", [FlipNoise(0.01, 0.4, where="target row"), DeletionNoise(0.8, 0.9, "B1", math.inf)])
def test_evidence_survives_a_file(noise):
    found = evidence(noise)
    again = SampleEvidence.load(found.tensors(), json.loads(json.dumps(found.settings(), allow_nan=False)))
    assert again.noise == noise
    assert again.settings() == found.settings()
    assert all((a == b).all() for a, b in zip(again.label_and_radius(), found.label_and_radius(), strict=True))


@pytest.mark.parametrize(
    "damage",
    [
        lambda t, s: t.pop("selection"),
        lambda t, s: t.update(selection=SELECTION[:2]),
        lambda t, s: t.update(estimation=ESTIMATION + np.array([[1, 0, 0], [0, 0, 0], [0, 0, 0]])),
        lambda t, s: t.update(estimation=ESTIMATION.astype(float)),
        lambda t, s: t.update(estimation=ESTIMATION - np.array([[0, 0, 0], [0, 0, 0], [301, -301, 0]])),
        lambda t, s: s.pop("alpha"),
        lambda t, s: s.update(alpha=1.5),
        lambda t, s: s.update(scope="nobody"),
        lambda t, s: s.update(task="edge"),
        lambda t, s: s.update(noise={"kind": "snow"}),
        lambda t, s: s.update(noise={"kind": "flips", "p_add": 0.2, "p_ad": 0.1}),
        lambda t, s: s.update(noise={"kind": "deletions", "p_edge": 0.2}),
    ],
)
def test_damaged_evidence_is_refused(damage):
    found = evidence()
    tensors, settings = dict(found.tensors()), found.settings()
    damage(tensors, settings)
    with pytest.raises(CertificateError, match="damaged"):
        SampleEvidence.load(tensors, settings)


def test_no_targets_is_no_error():
    nobody = evidence(selection=SELECTION[:0], estimation=ESTIMATION[:0])
    assert [len(a) for a in nobody.label_and_radius()] == [0, 0]
    assert nobody.broken_at_most(Budget(add_edges=1)) == 0


def test_certificates_from_samples_can_be_read_without_torch():
    code = "import sys, agnncert_peers.samples; print('torch' in sys.modules, 'scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_prices_of_a_smoothed_label_are_exact_for_one_kind_of_change_and_a_bound_for_several():
    estimation = np.array([[990, 8, 2], [700, 290, 10], [999, 1, 0]])
    proof = SampleEvidence("sparse-rs", FlipNoise(p_add=0.1, p_delete=0.4), estimation, estimation, 0.01)
    most = proof.max_certified("add_edges", Budget())
    assert (proof.cheapest(Prices(add_edges=3)) == 3 * (most + 1)).all()
    both = proof.cheapest(Prices(add_edges=3, delete_edges=2))
    for add, delete in itertools.product(range(4), repeat=2):
        broken = ~proof.holds(Budget(add_edges=add, delete_edges=delete))
        assert (both[broken] <= 3 * add + 2 * delete).all()
    assert (proof.cheapest(Prices(change_features=4)) == 4).all()  # nothing is proved about features
    possible = proof.possible(Budget(add_edges=int(most[0]) + 1))
    assert possible[0, 0]
    assert not possible[0].all()  # a class that is hardly ever seen stays out of reach for longer
    assert (proof.cheapest(Prices(add_edges=3), label=2) >= proof.cheapest(Prices(add_edges=3))).all()


@pytest.mark.parametrize("shape", [(3,), (3, 0), (3, 2, 2)], ids=str)
def test_counts_that_are_no_table_are_refused(shape):
    counts = np.ones(shape, dtype=np.int64)
    with pytest.raises(SettingsError, match=r"both must be \[targets, classes\]"):
        evidence(selection=counts, estimation=counts)
