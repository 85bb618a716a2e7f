"""Sums of thousands of equal terms: a vote that counts as stable is that of exact arithmetic."""

import numpy as np
import pytest

from agnncert.certifier import certify
from agnncert.divisions.edge import EdgeCentric
from tests.support.hubs import hub


def votes_of_hub(in_degree: int, weight: float, known: bool):
    case = hub(in_degree, weight, known)
    votes = certify(case.model, case.data, EdgeCentric(1), targets=np.array([0])).evidence.votes
    return case, int(votes.vote[0]), bool(votes.stable[0])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("in_degree", [2_000, 3_000, 4_000, 10_000])
def test_a_hub_votes_as_exact_arithmetic_does_or_is_unstable(in_degree, known):
    for k in range(8 if in_degree < 10_000 else 2):
        case, vote, stable = votes_of_hub(in_degree, 1000 + 8.37 * k, known)
        assert vote == case.exact or not stable, (in_degree, k)
