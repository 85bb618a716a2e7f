"""Files about pairs with votes drawn at random: true ones hold, and one step more or less is refused."""

from dataclasses import fields

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.errors import SettingsError
from agnncert.pairs.claim import make_pair_claim
from agnncert.pairs.evidence import PairEvidence
from agnncert.pairs.model import PairPrior
from agnncert.pairs.record import PairRecord
from agnncert.proving.certificate import Certificate
from formal.compare import random_pairs
from tests.soundness.forger.forging import drafted, seal
from tests.support.pair_data import ratings

BUDGETS = (ac.Budget(add_edges=2, delete_edges=1), ac.Budget(change_edges=1), ac.Budget(inject_nodes=1))


def certificate_of(rng, rule) -> Certificate:
    record = random_pairs(rng, f"pairs/{rule}", 24)
    evidence = PairEvidence(**{each.name: getattr(record, each.name) for each in fields(record)})
    claim = make_pair_claim(record, locality="construction", digests={"graph": "0" * 64, "model": "1" * 64})
    return Certificate(claim, evidence, np.arange(24))


@pytest.mark.parametrize("rule", ["common", "both", "trusted"])
def test_every_statement_is_the_largest_that_follows(rule, tmp_path) -> None:
    rng = np.random.default_rng(5)
    altered = 0
    for _ in range(4):
        certificate = certificate_of(rng, rule)
        honest = drafted(certificate, BUDGETS)
        file = tmp_path / "pairs.cert"
        assert seal(honest, file)
        assert ac.verify(file).holds
        for name in ("radius", "structure_radius", "new_neighbours"):
            finite = np.flatnonzero(np.isfinite(honest.arrays[name]) & (honest.arrays[name] >= 0))
            for place in finite[:3]:
                for more in (1, -1):
                    false = honest.copy()
                    false.arrays[name][place] += more
                    assert seal(false, file)
                    assert not ac.verify(file).holds, (name, more)
                    altered += 1
    assert altered > 30


def test_a_radius_that_forgets_altered_edges_of_contacts_is_refused(tmp_path) -> None:
    rng = np.random.default_rng(6)
    refused = 0
    for _ in range(6):
        certificate = certificate_of(rng, "trusted")
        if np.array_equal(certificate.radius, certificate.structure_radius):
            continue
        false = drafted(certificate, BUDGETS)
        false.arrays["radius"] = certificate.structure_radius.copy()
        assert seal(false, tmp_path / "false.cert")
        verdict = ac.verify(tmp_path / "false.cert")
        assert any(reason.startswith("the radius of") for reason in verdict.reasons), verdict
        refused += 1
    assert refused > 2


def test_a_column_beyond_the_last_is_refused_and_no_pair_is_no_error() -> None:
    with pytest.raises(SettingsError, match="1 columns to read"):
        ac.fit(None, ratings(), ac.PairVotes(epochs=1, trusted=1))
    record = random_pairs(np.random.default_rng(0), "pairs/common", 4)
    none = {each.name: getattr(record, each.name) for each in fields(record) if each.name != "pairs"}
    none |= {"prior": record.prior[:0], "gate": record.gate[:0], "indptr": record.indptr[:1], "which": record.which[:0]}
    none |= {"table": record.table[:0], "targets_per_node": record.targets_per_node[:0]}
    assert PairRecord(**none).pairs.shape == (0, 2)


def test_a_prior_of_columns_of_many_sizes_reads_each_in_its_own_unit() -> None:
    torch.manual_seed(0)
    plain = PairPrior(2, 1, 2, 8, directed=True, scaled=True).eval()
    x, values = torch.randn(50, 2), torch.randn(50, 1)
    plain.set_scale(x, values)
    before = plain(x[:25], x[25:], values[:25])
    unit, moved, amount = torch.tensor([1000.0, 0.01]), torch.tensor([5.0, -3.0]), 500.0
    plain.set_scale(x * unit + moved, values * amount + 7)
    after = plain((x * unit + moved)[:25], (x * unit + moved)[25:], (values * amount + 7)[:25])
    assert torch.allclose(before, after, atol=1e-4)
    constant = PairPrior(2, 1, 2, 8, directed=True, scaled=True).eval()
    constant.set_scale(torch.ones(9, 2), torch.ones(9, 1))
    assert torch.equal(constant.spread, torch.ones(3))
