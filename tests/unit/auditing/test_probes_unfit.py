"""The zoo of unfit models, written to deceive the audit: each is refused, for the right reason."""

import warnings

import pytest
import torch

from agnncert.auditing.model_audit import audit
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from tests.zoo.local import zoo_data
from tests.zoo.unfit import BATCH, UNFIT, UNFIT_FOR_GRAPHS, VALUES

DIVISIONS = (NodeCentric(5), EdgeCentric(5))
DATA, LARGE = zoo_data(), zoo_data(nodes=1200, pairs=1500)
GRAPHS = [zoo_data(seed, nodes=12, pairs=20) for seed in range(5)]


def refusal(make, **options):
    """What the audit finds, of a model with weights of its own."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return audit(make().eval(), **options)


@pytest.mark.parametrize("name", UNFIT)
def test_unfit_models_of_nodes_are_refused_for_the_right_reason(name):
    unfit = UNFIT[name]
    for division in DIVISIONS:
        report = refusal(unfit.make, division=division, data=LARGE if unfit.large else DATA)
        if unfit.one_way_only and isinstance(division, EdgeCentric):
            assert report.ok, "the edge-centric division allows it"
        else:
            assert any(finding.what.startswith(unfit.says) for finding in report.findings), str(report)


@pytest.mark.parametrize("name", UNFIT)
def test_most_of_them_are_refused_without_data_too(name):
    if UNFIT[name].large:
        pytest.skip("behaves well in small graphs: it takes the user's own to find out")
    assert not refusal(UNFIT[name].make, division=NodeCentric(5)).ok


@pytest.mark.parametrize("name", UNFIT_FOR_GRAPHS)
def test_unfit_models_of_graphs_are_refused_for_the_right_reason(name):
    unfit = UNFIT_FOR_GRAPHS[name]
    report = refusal(unfit.make, division=EdgeCentric(5), data=GRAPHS)
    assert any(finding.what.startswith(unfit.says) for finding in report.findings), str(report)
    assert report.needs_naive == (unfit.says == BATCH)


def test_the_zoo_is_large():
    assert len(UNFIT) + len(UNFIT_FOR_GRAPHS) >= 40


def test_what_is_left_of_a_model_that_looks_at_all_edges():
    report = refusal(UNFIT["weights by the largest"].make, division=EdgeCentric(5), data=DATA)
    assert [finding.what for finding in report.findings] == [VALUES]
    assert report.fit_for == ("edges",)
    assert refusal(UNFIT["weights by the largest"].make, division=NodeCentric(5), data=DATA).fit_for == ()
