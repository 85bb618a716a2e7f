"""Nodes that are certified over HTTP from their receptive fields, without the graph."""

import csv
import random
import re
from collections import Counter
from pathlib import Path

import pytest

import agnncert as ac
from agnncert.cli import main
from agnncert.cli.folder import find_run
from agnncert.cli.settings import CertifySettings
from agnncert.cli.studies import certified_model, study_of_run
from agnncert.datasets.generated_payments import write_payments
from agnncert.errors import SettingsError
from agnncert_live import LiveClient
from agnncert_live.budgets import json_number
from agnncert_live.client import ServiceError
from agnncert_live.fields import FieldCertifier
from agnncert_live.run import ServedRun, is_local, service_of_run, stateless_of_run
from tests.support import programs
from tests.support.live import ids_of
from tests.support.serving import a_graph, a_model, a_service, served

AS_OF = "2026-02-15"
SETTINGS = f"""
[train]
nodes = "bank/nodes.csv"
events = "bank/events.csv"
as_of = "{AS_OF}"

[train.column]
id = "account"
label = "class"
label_time = "known_since"
source = "payer"
target = "payee"
event_time = "paid_at"
event_key = "payment"
"""
QUICK = ("--set", "defence.epochs=20", "--epochs", "5", "--no-references")


@pytest.fixture(scope="module")
def bank(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bank")
    write_payments(folder / "bank", accounts=150, days=60, seed=1)
    (folder / "bank.toml").write_text(SETTINGS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "--settings", "bank.toml", *QUICK, "--out", "run"]) == 0
        rate = ("--set", "false_positive_rate=0.05", "--set", "positive=fraud")
        assert main(["certify", "run", *rate, "--set", "targets=all", "--no-report"]) == 0
    return folder


def rows_of(folder: Path, name: str) -> list[dict[str, str | None]]:
    with (folder / "bank" / name).open(encoding="utf-8") as file:
        return [{key: cell or None for key, cell in row.items()} for row in csv.DictReader(file)]


def field_of(bank: Path, target: str) -> dict[str, object]:
    """What two queries to a database return: the payments of an account, and the accounts at their ends."""
    accounts = {row["account"]: row for row in rows_of(bank, "nodes.csv")}
    events = [row for row in rows_of(bank, "events.csv") if str(row["paid_at"]) < AS_OF]
    mine = [row for row in events if target in (row["payer"], row["payee"])]
    names = sorted({target, *(str(row[end]) for row in mine for end in ("payer", "payee"))})
    nodes: list[dict[str, object]] = []
    for name in names:
        columns = accounts.get(name)
        kept = (
            None
            if columns is None
            else {k: v for k, v in columns.items() if k not in ("account", "class", "known_since")}
        )
        nodes.append({"id": name, "columns": kept})
    nodes[names.index(target)]["edges"] = len(mine)
    edges = [
        {
            "node": row["payer"],
            "other": row["payee"],
            "columns": {name: cell for name, cell in row.items() if name not in ("payer", "payee")},
        }
        for row in mine
    ]
    return {"target": target, "nodes": nodes, "edges": edges, "budget": {"add_edges": 2}}


def assert_is_that_of_certify(answer: dict[str, object], certificate: ac.Certificate) -> None:
    decision = certificate[answer["target"]]
    assert answer["label"] == decision.class_name
    assert answer["radius"] == decision.radius
    assert answer["votes"] == decision.votes.tolist()
    assert answer["withstands"] == {kind: json_number(most) for kind, most in decision.withstands.items()}
    assert answer["holds"] == decision.holds_against(ac.Budget(add_edges=2))


def test_a_field_of_payments_gives_the_certificate_of_the_whole_table(bank, monkeypatch) -> None:
    monkeypatch.chdir(bank)
    folder = find_run("run")
    _, study = study_of_run(folder, CertifySettings(root="."))
    model = certified_model(folder, study.new_model()).eval()
    whole = ac.certify(model, study.data, study.defence).with_class_names(study.data.class_names)
    stored = ac.load_certificate(folder.certificate)
    assert whole.label.tolist() == stored.label.tolist()
    certifier = stateless_of_run(ServedRun("run"))
    degree = Counter(str(row[end]) for row in rows_of(bank, "events.csv") for end in ("payer", "payee"))
    names = whole.target.tolist()
    listed = {row["account"] for row in rows_of(bank, "nodes.csv")}
    some = random.Random(0).sample(names, 12)
    some += [name for name in names if name not in listed][:2]  # payments name them, and no table does
    some += [name for name in names if not degree[name]][:1]  # no payments
    some += [max(names, key=degree.__getitem__)]
    for name in some:
        answer = certifier.certify(field_of(bank, name))
        assert_is_that_of_certify(answer, whole)
        assert answer["new_neighbours"] == json_number(whole.new_neighbours[names.index(name)])
    assert len({whole[name].label for name in some}) == 2


def test_the_command_serves_without_the_graph(bank, monkeypatch) -> None:
    monkeypatch.chdir(bank)
    words = [programs.AGNNCERT, "serve", "run", "--stateless", "--port", 0]
    with programs.start(*words) as process:
        try:
            address = re.search(r"http://[\d.:]+", process.stdout.readline())
            assert address
            client = LiveClient(address[0])
            summary = client.summary()
            assert summary["edges_within_hops"] == 0
            assert {"amount", "paid_at", "payment"} <= set(summary["columns_of_edges"])
            stored = ac.load_certificate("run/certificate.cert")
            name = stored.target.tolist()[3]
            assert_is_that_of_certify(client.certify(field_of(bank, name)), stored)
            assert 'agnncert_http_requests_total{path="/certify",status="200"} 1.0' in client.metrics()
            with pytest.raises(ServiceError) as missing:
                client.decision(name)
            assert missing.value.status == 404
        finally:
            process.terminate()
            process.wait(20)
    assert main(["serve", "run", "--stateless", "--journal", "j"]) == 2


def test_a_service_with_a_graph_certifies_fields_too(bank, monkeypatch) -> None:
    monkeypatch.chdir(bank)
    service = service_of_run(ServedRun("run", root="."))
    with service.live, served(service) as address:
        client = LiveClient(address)
        name = service.live.targets.tolist()[5]
        asked, sent = client.decision(name, add_edges=2), client.certify(field_of(bank, name))
        for part in ("label", "radius", "votes", "withstands", "holds"):
            assert asked[part] == sent[part]


def values_of(field: ac.ReceptiveField) -> dict[str, object]:
    """The request of a field of a graph without tables. Edges are directed, as in the graph."""
    names = ids_of(field.data)
    nodes = [
        {"id": name, "value": row, "edges": field.edges[name]}
        for name, row in zip(names, field.data.x.tolist(), strict=True)
    ]
    ends = field.data.edge_index.t().tolist()
    edges = [{"node": names[u], "other": names[v], "directed": True} for u, v in ends]
    return {"target": field.target, "nodes": nodes, "edges": edges, "budget": {"add_edges": 2}}


def test_a_field_of_values_gives_the_certificate_of_the_whole_graph() -> None:
    data = a_graph()
    model = a_model(data)
    certifier = FieldCertifier(model, ac.NodeCentric(8).as_defence(), ["honest", "fake", "bot"])
    whole = ac.certify(model, data, ac.NodeCentric(8)).with_class_names(certifier.class_names)
    for name in data.node_id[:6]:
        field = ac.receptive_field(model, data, ac.NodeCentric(8), name)
        assert_is_that_of_certify(certifier.certify(values_of(field)), whole)


WRONG = {
    "an edge is missing": (lambda field: field["edges"].pop(), 400, "the receptive field is not whole"),
    "a node is missing": (lambda field: field["nodes"].pop(), 400, "which is not among the nodes"),
    "a node twice": (lambda field: field["nodes"].append(field["nodes"][0]), 400, "is sent twice"),
    "no target": (lambda field: field.pop("target"), 422, "expected"),
    "another field": (lambda field: field.update(nonsense=1), 422, "expected"),
    "target elsewhere": (
        lambda field: field.update(target="nobody"),
        404,
        "the target 'nobody' is not among the nodes",
    ),
    "no features": (lambda field: field["nodes"][0].pop("value"), 400, "needs its features as value"),
    "features of two lengths": (lambda field: field["nodes"][0]["value"].pop(), 400, "rows of different lengths"),
    "columns": (lambda field: field["edges"][0].update(columns={"amount": 3}), 400, "the run was made from no tables"),
    "a number that is none": (lambda field: field["nodes"][0].update(edges="3"), 400, "how many edges it has"),
    "a budget of nonsense": (lambda field: field.update(budget={"money": 3}), 422, "a budget has no 'money'"),
    "an id of nonsense": (lambda field: field.update(target=[1]), 400, "ids are texts or whole numbers"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_request_that_makes_no_sense_is_refused_with_its_reason(mistake, sent_wrong) -> None:
    client, field = sent_wrong
    change, status, words = WRONG[mistake]
    change(field)
    with pytest.raises(ServiceError, match=words) as refused:
        client.certify(field)
    assert refused.value.status == status


@pytest.fixture(scope="module")
def of_values():
    service = a_service()
    service.fields = FieldCertifier(service.live.model, service.live.defence, service.class_names)
    with served(service) as address:
        yield LiveClient(address)


@pytest.fixture
def sent_wrong(of_values):
    data = a_graph()
    field = values_of(ac.receptive_field(a_model(data), data, ac.NodeCentric(8), "user-3"))
    assert of_values.certify(field)["target"] == "user-3"
    return of_values, field


def test_what_is_not_local_cannot_be_asked_for(of_values) -> None:
    data = a_graph()
    model = a_model(data)
    assert is_local(ac.NodeCentric(4).as_defence(), model)
    assert not is_local(ac.EdgeCentric(4).as_defence(), model)
    certifier = FieldCertifier(model, ac.EdgeCentric(4).as_defence())
    field = values_of(ac.receptive_field(model, data, ac.NodeCentric(4), "user-3"))
    with pytest.raises(SettingsError, match="may depend on the whole graph"):
        certifier.certify(field)
    with served(a_service()) as address, pytest.raises(ServiceError) as refused:  # its run cannot certify fields
        LiveClient(address).certify(field)
    assert refused.value.status == 404
