"""With the identity of nodes broken on purpose, a check of ids must turn red; with nothing broken, none does."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

from agnncert.certificates import file
from agnncert.certificates.budget import Budget
from agnncert.datasets import columns
from agnncert.errors import AgnncertError
from agnncert.graphs import checks, perturbation, targets
from agnncert.graphs.canonical import canonical
from agnncert.graphs.digest import graph_digest
from agnncert.graphs.node_ids import node_keys
from agnncert.graphs.perturbation import Perturbation
from agnncert.proving import certificate
from tests.support.certificates import certificate_of, random_evidence
from tests.support.graphs import make_data, twin_of
from tests.support.mutations import turns_red

TWINS = ["x", twin_of("x"), "hub"]
STRANGE = [-1, 2**63, "a", "a\0", "07"]


def star(ids) -> Data:
    """All nodes joined to the last one."""
    last = len(ids) - 1
    return make_data([arc for u in range(last) for arc in ((u, last), (last, u))], len(ids), ids=ids)


# The checks


def twins_are_two_nodes() -> None:
    data = star(TWINS)
    for row, name in enumerate(TWINS):
        changed = Perturbation(change_features={name: [7.0] * 3}).apply(data)
        assert (changed.x == 7).all(1).nonzero().view(-1).tolist() == [row]
    assert Perturbation(inject_nodes={TWINS[1]: [0.0] * 3}).apply(star(["x", "hub"])).node_id == ["x", "hub", TWINS[1]]
    assert Perturbation(delete_nodes=TWINS[:2], delete_edges=[("x", 1), (TWINS[1], 1)]).cost() == Budget(
        delete_nodes=2, delete_edges=2
    )


def other_ids_are_another_graph() -> None:
    twins = [graph_digest(canonical(star([name, "hub"]))) for name in ("x", twin_of("x"))]
    assert twins[0] != twins[1]
    rows = Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0, dtype=torch.int64))
    named = Data(**rows.to_dict(), node_id=torch.arange(2))
    assert graph_digest(canonical(rows)) != graph_digest(canonical(named))


def order_depends_on_ids() -> None:
    for ids in (TWINS, [TWINS[1], TWINS[0], "hub"]):
        arcs = canonical(star(ids)).edge_index.t().tolist()
        assert [ids[u] for u, v in arcs if v == 2] == [TWINS[1], TWINS[0]]


def attacks_keep_ids() -> None:
    data = star(STRANGE)
    grown = Perturbation(inject_nodes={"new": [0.0] * 3}).apply(data)
    assert grown.node_id == [*STRANGE, "new"]
    keys = canonical(grown).node_key[:-1], canonical(data).node_key
    assert torch.equal(*keys)


def certificates_keep_ids() -> None:
    assert targets.CanonicalData.of(star(STRANGE)).targets().ids.tolist() == STRANGE
    evidence = random_evidence(np.random.default_rng(0), "gated/node", num_targets=len(STRANGE))
    with TemporaryDirectory() as folder:
        made = certificate_of(evidence, target=STRANGE)
        made.save(Path(folder) / "a.cert")
        assert certificate.load_certificate(Path(folder) / "a.cert").target.tolist() == made.target.tolist() == STRANGE


def tables_keep_ids() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "nodes.parquet"
        pq.write_table(pa.table({"id": pa.array([2**53 + 1, None], pa.int64())}), path)
        assert columns.read_table(path, ["id"]).text("id") == [str(2**53 + 1), ""]
        pq.write_table(pa.table({"id": np.array([2.0**53 + 2])}), path)
        with pytest.raises(AgnncertError):
            columns.read_table(path, ["id"]).text("id")


# The mistakes


def find_rows_by_key(patch):
    key_of = perturbation.keys_of
    patch.setattr(perturbation, "encode_id", lambda node: key_of([node])[0])
    patch.setattr(perturbation, "exact_ids", lambda data: node_keys(data).numpy())


def find_injected_ids_by_key(patch):
    plain = perturbation.exact_ids
    patch.setattr(perturbation, "exact_ids", lambda data: np.array(perturbation.keys_of(plain(data))))
    patch.setattr(perturbation, "_distinct", lambda ids: list(dict.fromkeys(perturbation.keys_of(ids))))


def count_pairs_by_key(patch):
    patch.setattr(perturbation, "distinct_pairs", lambda pairs: {tuple(sorted(map(_key, pair))) for pair in pairs})


def _key(node):
    return perturbation.keys_of([node])[0]


def digest_keys_alone(patch):
    patch.setattr(checks, "id_digest", lambda ids: "")


def digest_rows_as_ids(patch):
    patch.setattr(checks, "row_digest", lambda count: checks.id_digest(np.arange(count)))


def rank_twins_by_row(patch):
    plain = checks.keys_and_ties
    patch.setattr(checks, "keys_and_ties", lambda ids: plain(ids)._replace(ties=None))


def let_numpy_read_the_ids(patch):
    patch.setattr(perturbation, "listed_ids", lambda ids: np.asarray(ids).astype(str))


def let_numpy_pick_the_ids(patch):
    patch.setattr(targets, "id_array", np.asarray)


def let_numpy_hold_the_ids(patch):
    patch.setattr(certificate, "as_ids", lambda ids: np.asarray(ids, dtype=np.str_))


def let_numpy_load_the_ids(patch):
    patch.setattr(file, "id_array", lambda ids: np.array(ids, dtype=np.str_))


def let_pandas_read_gaps(patch):
    patch.setattr(columns, "_read_parquet", lambda path, text: pd.read_parquet(path))


def round_floats(patch):
    patch.setattr(columns.Table, "_whole", lambda self, name: self.frame[name].astype("Int64").astype(str).tolist())


MUTATIONS = [
    (find_rows_by_key, twins_are_two_nodes),
    (find_injected_ids_by_key, twins_are_two_nodes),
    (count_pairs_by_key, twins_are_two_nodes),
    (digest_keys_alone, other_ids_are_another_graph),
    (digest_rows_as_ids, other_ids_are_another_graph),
    (rank_twins_by_row, order_depends_on_ids),
    (let_numpy_read_the_ids, attacks_keep_ids),
    (let_numpy_pick_the_ids, certificates_keep_ids),
    (let_numpy_hold_the_ids, certificates_keep_ids),
    (let_numpy_load_the_ids, certificates_keep_ids),
    (let_pandas_read_gaps, tables_keep_ids),
    (round_floats, tables_keep_ids),
]


@pytest.mark.parametrize(("mistake", "check"), MUTATIONS, ids=lambda part: part.__name__)
def test_a_broken_identity_turns_its_check_red(monkeypatch, mistake, check):
    with monkeypatch.context() as patch:
        turns_red(patch, mistake, check, (AssertionError, AgnncertError, pytest.fail.Exception))


@pytest.mark.parametrize("check", sorted({check for _, check in MUTATIONS}, key=lambda check: check.__name__))
def test_with_nothing_broken_every_check_is_green(check):
    check()
