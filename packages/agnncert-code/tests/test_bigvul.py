import gzip
import json
import logging
from functools import cache

import numpy as np
import pytest

import agnncert as ac
from agnncert.errors import DatasetError
from agnncert_code import bigvul


def body(k, statements):
    return f"int f{k}(int a) {{ " + " ".join(f"a = g{j}(a);" for j in range(statements)) + " return a; }"


def lines(texts):
    return gzip.compress("\n".join(json.dumps(text) for text in texts).encode())


@pytest.fixture
def root(tmp_path):
    """Twelve vulnerable functions of growing length among 72, one of them twice in another layout."""
    rows = [{"id": k, "label": int(k < 12), "func": body(k, 2 + k % 12)} for k in range(72)]
    rows.append({"id": 72, "label": 0, "func": body(0, 2).replace(" ", "\n  ") + " // the same"})
    folder = tmp_path / "BigVul" / "raw"
    folder.mkdir(parents=True)
    (folder / "bigvul_linevul_test_split.jsonl.gz").write_bytes(lines(rows))
    return tmp_path


def test_vulnerable_functions_stand_against_as_many_others(root):
    graphs = ac.load_dataset("big-vul", root=root)
    assert len(graphs) == 24
    assert graphs.y.tolist() == [1] * 12 + [0] * 12
    assert sum(len(part) for part in graphs.split) == 24
    assert len({graph.graph_id for graph in graphs}) == 24
    assert all(abs(int(graphs.y[part].sum()) * 2 - len(part)) == 0 for part in graphs.split)


def test_equal_functions_are_one_and_vulnerable_if_any_is(root):
    corpus = bigvul.load_corpus(root)
    assert len(corpus.label) == 72
    assert corpus.row.tolist() == list(range(72))
    twice = bigvul.read_corpus(lines([{"id": k, "label": k, "func": "int f() { g(); }" + " " * k} for k in range(2)]))
    assert twice.label.tolist() == [1]


def test_seeds_draw_other_functions_and_other_splits(root):
    ids = [{g.graph_id for g in ac.load_dataset("big-vul", root=root, seed=seed)} for seed in (0, 0, 1)]
    assert ids[0] == ids[1] != ids[2]


def test_matched_functions_are_of_the_same_length_in_every_part(root):
    graphs = ac.load_dataset("big-vul-matched", root=root)
    sizes = np.array([graph.num_nodes for graph in graphs])
    for part in graphs.split:
        y = graphs.y[part].numpy()
        assert sorted(sizes[part][y == 1]) == sorted(sizes[part][y == 0])
    assert len({graph.graph_id for graph in graphs}) == 24


def test_every_pair_of_statements_is_joined_once_in_both_directions(root):
    graph = ac.load_dataset("big-vul", root=root)[3]
    pairs = list(map(tuple, graph.edge_index.T.tolist()))
    assert len(set(pairs)) == len(pairs)
    assert {(b, a) for a, b in pairs} == set(pairs)
    assert graph.edge_attr.sum(dim=1).max() >= 2  # control and data flow between the same two


def test_graphs_are_kept_and_read_again(root, monkeypatch):
    first = bigvul.load_corpus(root)
    monkeypatch.setattr(bigvul, "graph", None)  # nothing is parsed the second time
    again = bigvul.load_corpus(root)
    assert [g.ids for g in again.graphs] == [g.ids for g in first.graphs]
    assert [g.texts for g in again.graphs] == [g.texts for g in first.graphs]
    for a, b in zip(first.graphs, again.graphs, strict=True):
        assert np.array_equal(a.edges, b.edges)
        assert np.array_equal(a.kinds, b.kinds)
        assert np.array_equal(a.lines, b.lines)
        assert (a.partial, a.name) == (b.partial, b.name)


def test_kept_graphs_of_other_texts_or_of_an_older_reader_are_not_used(root, monkeypatch):
    bigvul.load_corpus(root)
    kept = list((root / "BigVul" / "processed").iterdir())
    monkeypatch.setattr(bigvul, "VERSION", bigvul.VERSION + 1)
    bigvul.load_corpus(root)
    bigvul.load_corpus(root, edges="names")
    assert len(kept) == 1
    assert len(list((root / "BigVul" / "processed").iterdir())) == 3


def test_damaged_graphs_are_read_from_the_texts_again(root, caplog):
    expected = bigvul.load_corpus(root)
    (kept,) = (root / "BigVul" / "processed").iterdir()
    kept.write_bytes(kept.read_bytes()[:-9] + b"different")
    with caplog.at_level(logging.WARNING):
        assert [g.ids for g in bigvul.load_corpus(root).graphs] == [g.ids for g in expected.graphs]
    assert "altered or damaged" in caplog.text


def test_a_missing_or_damaged_file_is_named(root, tmp_path):
    with pytest.raises(DatasetError, match=r"jsonl\.gz is missing .*github.com/kpatsakis/linevul.*docs/code.md"):
        ac.load_dataset("big-vul", root=tmp_path / "elsewhere")
    for blob in (b"no gzip", lines([{"id": 1}]), gzip.compress(b"[1]")):
        with pytest.raises(DatasetError, match="cannot be read"):
            bigvul.read_corpus(blob)


@pytest.fixture(scope="module")
def real(data_root):
    """All functions, and what makes the graph of one of them: half of those in one set are in the other, too."""
    corpus, make = bigvul.load_corpus(data_root), bigvul._data
    return corpus, cache(lambda k, embed: make(corpus, k, embed))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["big-vul", "big-vul-matched"])
def test_the_real_set_has_its_known_size(name, data_root, real, monkeypatch):
    corpus, made = real
    monkeypatch.setattr(bigvul, "load_corpus", lambda *_: corpus)
    monkeypatch.setattr(bigvul, "_data", lambda _, k, embed: made(k, embed))
    info, graphs = ac.datasets.catalog.DATASETS[name], ac.load_dataset(name, root=data_root)
    assert (len(graphs), graphs.num_classes, graphs.num_features) == (info.size, info.classes, info.features)
    assert np.mean([g.num_edges / 2 for g in graphs]) == pytest.approx(info.edges, abs=0.01)
    sizes = np.array([g.num_nodes for g in graphs])
    gap = sizes[graphs.y == 1].mean() / sizes[graphs.y == 0].mean()
    assert (gap > 2) if name == "big-vul" else (0.95 < gap < 1.05)
