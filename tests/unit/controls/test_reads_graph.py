"""A certified model whose neighbours have no vote does not read the graph, and the table says so."""

import numpy as np
import pytest

from agnncert.controls.table import Control, compare_with
from tests.support.stacked_records import random_stacked, stacked_certificate


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("kind", "said"), [("sum", "yes"), ("no votes", "no")])
def test_a_model_without_votes_does_not_read_the_graph(kind, said, classes):
    certificate = stacked_certificate(random_stacked(np.random.default_rng(0), kind, 30, classes))
    truth = np.arange(30) % classes
    control = Control("mine", label=truth, reads_graph=True)
    compared = compare_with(certificate, [control], truth=truth, positive=1 if classes == 2 else None)
    titles, rows = compared.table()
    assert rows[0][titles.index("reads the graph")] == said
