"""Stacked votes in ``agnncert compare``: on a user's tables, one column of which marks trusted edges."""

import random

import agnncert as ac
from agnncert.certificates.claim import PREMISES
from agnncert_peers.steps import CompareSettings, compare_run


def test_a_column_of_a_table_marks_trusted_edges(tmp_path):
    rng, folder = random.Random(0), tmp_path / "accounts"
    folder.mkdir()
    kinds = [rng.randrange(2) for _ in range(60)]
    nodes = [f"n{k},{kind + rng.gauss(0, 1):.3f},{kind}" for k, kind in enumerate(kinds)]
    pairs = {tuple(sorted(rng.sample(range(60), 2))) for _ in range(150)}
    edges = [f"n{a},n{b},{int(rng.random() < 0.5)}" for a, b in sorted(pairs)]
    (folder / "nodes.csv").write_text("\n".join(["id,height,label", *nodes]) + "\n")
    (folder / "edges.csv").write_text("\n".join(["source,target,known", *edges]) + "\n")
    settings = CompareSettings(
        data=str(folder), trusted="known", defence=("stacked:folds=2,epochs=5",), sizes="0,1",
        fit={"epochs": 5}, references=False,
    )  # fmt: skip
    compared = compare_run(settings, tmp_path / "out")
    certificate = ac.load_certificate(next((tmp_path / "out" / "certificates").glob("*.cert")))
    assert certificate.claim.assumes[len(PREMISES)].startswith(
        "Edges that are marked as trusted (column 0 of edge_attr"
    )
    trusted = sum(line.endswith(",1") for line in edges)
    assert 0 < len(certificate.evidence.which) <= 2 * (len(edges) - trusted)
    assert compared.comparison.rows[0]["defence"].startswith("stacked-votes")
