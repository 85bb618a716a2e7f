"""Training graphs without an id: their content identifies them, and an altered one counts as two."""

import copy
from dataclasses import replace

import pytest
import torch

import agnncert as ac
from agnncert.certificates.file import read_contents, write_contents
from agnncert.errors import CertificateError, DatasetError, IdError, SettingsError
from agnncert.graphs.graph_ids import content_ids
from agnncert.isolated.parts import sort_into_parts
from agnncert.isolated.record import IsolatedRecord
from agnncert.models.digest import model_digest
from tests.unit.isolated.test_training import make_graph, make_set, train

BY_CONTENT = ac.IsolatedModels(num_models=4, ids="content")


def nameless(graphs=None):
    graphs = [make_graph(number) for number in range(18)] if graphs is None else graphs
    for graph in graphs:
        if "graph_id" in graph:
            del graph.graph_id
    return graphs


def weights_of(models):
    return [torch.cat([each.reshape(-1) for each in one.state_dict().values()]) for one in models.models]


def altered_models(before, graphs):
    after = weights_of(train(make_set(graphs), BY_CONTENT))
    return [not torch.equal(one, other) for one, other in zip(before, after, strict=True)]


def an_inserted_graph(graphs):
    return [*nameless([make_graph(77)]), *graphs]


def a_copy_of_a_graph(graphs):
    return [copy.deepcopy(graphs[7]), *graphs]


def a_deleted_graph(graphs):
    return graphs[:4] + graphs[5:]


@pytest.mark.parametrize("change", [an_inserted_graph, a_copy_of_a_graph, a_deleted_graph])
def test_an_inserted_or_deleted_graph_alters_one_model_wherever_it_stands(change):
    before = weights_of(train(make_set(nameless()), BY_CONTENT))
    assert sum(altered_models(before, change(nameless()))) == 1


def altered_features(graph):
    graph.x = graph.x + 1


def altered_class(graph):
    graph.y = 1 - graph.y


def altered_edges(graph):
    graph.edge_index = graph.edge_index[:, 1:]


@pytest.mark.parametrize("change", [altered_features, altered_class, altered_edges])
def test_an_altered_graph_alters_two_models_at_most(change):
    before = weights_of(train(make_set(nameless()), BY_CONTENT))
    found = set()
    for row in range(4):
        graphs = nameless()
        change(graphs[row])
        found.add(sum(altered_models(before, graphs)))
    assert found in ({1, 2}, {2})  # one if both contents are in the same part; the claim counts two


def test_ids_depend_on_content_alone_and_equal_graphs_are_told_apart():
    graphs = nameless()
    ids = content_ids(graphs)
    assert len(set(ids)) == 18
    assert content_ids(graphs[::-1]) == ids[::-1]
    twice = content_ids([*graphs, copy.deepcopy(graphs[0])])
    assert (twice[:-1], len(set(twice))) == (ids, 19)


def test_content_without_a_digest_is_refused_and_so_are_graphs_without_ids():
    graphs = nameless()
    with pytest.raises(DatasetError, match=r"defence\.ids=content"):
        sort_into_parts(make_set(graphs), 4, "md5")
    graphs[3].extra = {"a": [1]}
    with pytest.raises(IdError, match="holds extra, a dict"):
        sort_into_parts(make_set(graphs), 4, "md5", "content")
    with pytest.raises(SettingsError, match="ids='row'"):
        ac.IsolatedModels(ids="row")


def test_the_claim_says_that_an_altered_graph_counts_twice(tmp_path):
    data = make_set(nameless())
    model = train(data, BY_CONTENT)
    certificate = ac.certify(model, data, BY_CONTENT, [0, 1, 2])
    assert "an altered graph counts twice" in certificate.claim.covers[0]
    assert certificate.claim.unit.endswith("an altered one is two")
    certificate.save(tmp_path / "a.cert")
    verdict = ac.verify(tmp_path / "a.cert", data=data, model=model)
    assert (verdict.holds, verdict.reasons) == (True, ())
    ac.save_model(model, tmp_path / "a.model")
    assert str(ac.load_model(tmp_path / "a.model").defence) == str(BY_CONTENT)
    other = ac.IsolatedModels(num_models=4)
    assert "ids by content" in ac.verify(tmp_path / "a.cert", data=data, defence=other).reasons[0]


def test_a_file_that_names_other_ids_than_its_claim_is_refuted(tmp_path):
    """A claim about ids that graphs keep, over votes of models whose parts follow from content, would halve the count."""
    data = make_set(nameless())
    ac.certify(train(data, BY_CONTENT), data, BY_CONTENT, [0, 1]).save(tmp_path / "a.cert")
    contents = read_contents(tmp_path / "a.cert")
    settings = {name: value for name, value in contents.settings.items() if name != "graph_ids"}
    write_contents(tmp_path / "b.cert", replace(contents, settings=settings))
    assert not ac.verify(tmp_path / "b.cert").holds
    with pytest.raises(CertificateError, match="ids of training graphs are 'row'"):
        IsolatedRecord.load(contents.evidence, {**contents.settings, "graph_ids": "row"})


def test_the_digest_of_models_depends_on_the_kind_of_ids_and_not_on_processes():
    data = make_set(nameless())
    models = train(data, BY_CONTENT)
    stated = model_digest(models)
    models.defence = replace(BY_CONTENT, own_processes=True)
    assert model_digest(models) == stated
    models.defence = replace(BY_CONTENT, ids="graph_id")
    assert model_digest(models) != stated
