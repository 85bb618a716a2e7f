import logging
import random

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.errors import DatasetError
from agnncert_code import reading
from agnncert_code.reading import functions, graph, read_functions

SOURCE = """static int copy(char *to, const char *from, int n)
{
    int i;
    if (n < 0)
        return -1;
    for (i = 0; i < n; i++)
        to[i] = from[i];
    i = 0;
    return i;
}
"""


def test_a_function_becomes_a_graph_of_its_statements():
    found = graph(SOURCE)
    assert found.name == "copy"
    assert not found.partial
    assert found.ids == sorted(f"#1 {text}" for text in found.texts)
    by_line = dict(zip(found.lines.tolist(), found.texts, strict=True))
    assert by_line[7] == "to [ i ] = from [ i ] ;"
    joined = {(found.texts[a], found.texts[b], int(k)) for (a, b), k in zip(found.edges.T, found.kinds, strict=True)}
    assert ("for ( i = 0 ; i < n ; i ++ )", "to [ i ] = from [ i ] ;", 1) in joined
    assert ("if ( n < 0 )", "return - 1 ;", 2) in joined
    assert ("to [ i ] = from [ i ] ;", "for ( i = 0 ; i < n ; i ++ )", 0) in joined
    assert ("int i ;", "return i ;", 1) not in joined


def test_layout_comments_and_braces_leave_the_graph_as_it_is():
    plain, other = (
        graph("int f(int a){if(a)g();return 1;}"),
        graph("int f(int a) // x\n{ if (a)\n\n { g(); } return 1; }"),
    )
    assert plain.ids == other.ids
    assert np.array_equal(plain.edges, other.edges)
    assert np.array_equal(plain.kinds, other.kinds)


def test_data_has_ids_one_hot_kinds_and_lines():
    data = graph(SOURCE).to_data()
    assert data.x.shape[0] == len(data.node_id) == len(data.line)
    assert torch.equal(data.edge_attr.sum(dim=1), torch.ones(data.num_edges))
    assert data.edge_attr.shape[1] == 4
    assert data.validate()


def test_a_graph_of_code_can_be_certified():
    graphs = [graph(SOURCE).to_data(), graph("int f() { g(); h(); return 1; }").to_data()]
    model = ac.build_model("gin", graphs, task="graph", out_channels=2).eval()
    cert = ac.certify(model, graphs, ac.NodeCentric(7))
    assert len(cert.label) == 2


def test_every_function_of_a_file_is_read(tmp_path, caplog):
    (tmp_path / "a.c").write_text("int x; int f(void) { return 1; }\nint g(void) { return 2; }\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.cpp").write_text("int C::h() { return 3; }")
    (tmp_path / "bad.c").write_bytes(b"int f() { return '\xff'; }")
    (tmp_path / "notes.txt").write_text("int no() {}")
    with caplog.at_level(logging.WARNING):
        found = read_functions(tmp_path)
    assert [(data.function, int(data.line.min())) for data in found] == [("f", 1), ("g", 2), ("C::h", 1)]
    assert found[2].file.endswith("b.cpp")
    assert list(found.skipped) == [str(tmp_path / "bad.c")]
    assert "UTF-8" in caplog.text
    assert len(read_functions(tmp_path / "a.c")) == 2


def test_a_folder_without_source_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="no C or C"):
        read_functions(tmp_path)
    with pytest.raises(DatasetError, match="does not exist"):
        read_functions(tmp_path / "none")


def test_functions_of_one_text_are_read_as_if_each_stood_alone():
    first, second = "int f(int a) { if (a) return a; return 0; }", "int g() { return f(1); }"
    together = functions(first + "\n" + second)
    assert [found.ids for found in together] == [graph(first).ids, graph(second).ids]
    assert np.array_equal(together[0].edges, graph(first).edges)


def test_reading_twice_gives_the_same():
    lines = SOURCE.splitlines()
    random.Random(0).shuffle(lines)
    for text in (SOURCE, "\n".join(lines)):
        a, b = graph(text), graph(text)
        assert a.ids == b.ids
        assert np.array_equal(a.edges, b.edges)


def test_text_that_is_made_to_be_slow_to_parse_is_given_up(tmp_path, monkeypatch):
    slow = "int f(int a) { @ " + "/ * /* x " * 2400 + " }"  # takes seconds, and four times as long if it is doubled
    (tmp_path / "slow.c").write_text(slow)
    (tmp_path / "usual.c").write_text(SOURCE)
    monkeypatch.setattr(reading, "LONGEST", 0.05)
    found = read_functions(tmp_path)
    assert found.skipped == {str(tmp_path / "slow.c"): "cannot be parsed within 0.05 seconds"}
    assert [data.function for data in found] == ["copy"]
    assert graph(SOURCE).name == "copy"  # no limit is left behind
