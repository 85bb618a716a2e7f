"""Decisions about pairs from the command line: a table of payments, from training to the explanation of one payment."""

import csv
import json
import random
import shutil
from pathlib import Path

import pytest

import agnncert as ac
from agnncert.cli import main
from agnncert.pairs.targets import BETWEEN

SETTINGS = ("--set", "encode=auto", "--epochs", "6")


def write_payments(folder: Path, accounts: int = 90, payments: int = 360) -> Path:
    """Accounts of six groups that mostly pay within their group; payments across groups are mostly fraud."""
    rng = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    group = [rng.randrange(6) for _ in range(accounts)]
    nodes = [f"acc{k},{30 + 5 * rng.gauss(0, 1):.1f},{1000 * (1 + rng.random()):.2f}" for k in range(accounts)]
    (folder / "nodes.csv").write_text("\n".join(["id,age,balance", *nodes]) + "\n", encoding="utf-8")
    edges = [
        f"acc{a},acc{b}"
        for a in range(accounts)
        for b in range(a)
        if rng.random() < (0.6 if group[a] == group[b] else 0.02)
    ]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n", encoding="utf-8")
    rows: dict[tuple[int, int], str] = {}
    while len(rows) < payments:
        a, b = rng.sample(range(accounts), 2)
        if rng.random() < 0.5:
            b = rng.choice([k for k in range(accounts) if group[k] == group[a] and k != a])
        is_fraud = (group[a] != group[b]) == (rng.random() < 0.97)
        amount = rng.expovariate(1 / (900 if is_fraud else 500))
        rows[a, b] = f"acc{a},acc{b},{amount:.2f},{rng.choice(['app', 'web'])},{'fraud' if is_fraud else 'genuine'}"
    (folder / "pairs.csv").write_text(
        "\n".join(["source,target,amount,channel,label", *rows.values()]) + "\n", encoding="utf-8"
    )
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with payments and a run on them, certified."""
    folder = tmp_path_factory.mktemp("pairs")
    write_payments(folder / "payments")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "payments", *SETTINGS, "--out", "run"]) == 0
        assert main(["certify", "run"]) == 0
    return folder


@pytest.fixture
def run(place: Path, made: Path) -> Path:
    shutil.copytree(made / "payments", "payments")
    return Path(shutil.copytree(made / "run", "runs/pairs"))


def said(answer) -> str:
    return " ".join(answer.err.split())


def table_in(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def test_a_run_goes_from_tables_to_a_verdict_with_data_and_model(agnncert, run) -> None:
    certificate = ac.load_certificate(run / "certificate.cert")
    data = ac.load_tables("payments", encode=run / "encoding.json")
    assert certificate.claim.task == "pair"
    assert certificate.num_targets == int(data.test_mask.sum())
    assert certificate.class_names == ("fraud", "genuine")
    assert (certificate.structure_radius[certificate.label == certificate.truth] >= 1).mean() > 0.5
    verdict = agnncert("verify", run, "--require", "data,model")
    assert verdict.status == 0, verdict.out
    assert "the graph, and the targets with their ids" in verdict.out
    rows = {row["measure"]: row["value"] for row in json.loads(agnncert("certify", run, "--json").out)["results"]}
    assert rows["accuracy of the vote"] == rows["accuracy on the whole graph"]
    trained = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    assert {"accuracy, no edges", "accuracy, undefended"} <= {row["measure"] for row in trained}


def test_the_pages_speak_of_pairs(agnncert, run) -> None:
    shown = agnncert("show", run).out
    assert "deterministic, pairs" in shown
    assert "hidden from the decision about that pair" in shown
    assert "Whoever makes a payment writes its amount himself" in shown
    for foreign in ("undefended GNN", "of the node itself", "MLP"):
        assert foreign not in shown
    assert agnncert("report", run).status == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert '"target_title": "Pair"' in page.replace('":"', '": "')
    card = (run / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "| task | pair |" in " ".join(card.split())
    assert "| pairs | 360 |" in " ".join(card.split())


def test_an_export_has_a_row_for_each_payment(agnncert, run) -> None:
    assert agnncert("export", run).status == 0
    rows = table_in(run / "targets.csv")
    certificate = ac.load_certificate(run / "certificate.cert")
    assert [row["id"] for row in rows] == certificate.target.tolist()
    assert {"fraud", "genuine"} == {row["class_name"] for row in rows}


def test_one_payment_is_explained_by_its_two_ids(agnncert, run) -> None:
    certificate = ac.load_certificate(run / "certificate.cert")
    helped = [name for name in certificate.target.tolist() if certificate[name].radius == 1]
    answer = json.loads(agnncert("explain", run, helped[0].replace(BETWEEN, ","), "--json").out)
    assert answer["target"] == helped[0]
    assert answer["counts"] == certificate[helped[0]].votes.tolist()
    given, voters = answer["given"][0]["votes"], [voter["votes"] for voter in answer["voters"]]
    assert [sum(column) for column in zip(given, *voters, strict=True)] == answer["total"]
    assert agnncert("explain", run, helped[0]).status == 0  # as the certificate writes it
    assert agnncert("report", run, "--explain", helped[0].replace(BETWEEN, ",")).status == 0
    unknown = agnncert("explain", run, "acc1,nobody")
    assert (unknown.status, "has no pair acc1,nobody" in said(unknown)) == (2, True)


def test_new_payments_are_labelled_without_their_true_classes(agnncert, run) -> None:
    lines = Path("payments/pairs.csv").read_text(encoding="utf-8").splitlines()
    new = Path(shutil.copytree("payments", "new"))
    (new / "pairs.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines[:21]) + "\n", encoding="utf-8")
    scored = agnncert("score", run, new)
    assert scored.status == 0, scored.err
    rows = table_in(Path("scores.csv"))
    assert [row["id"] for row in rows] == [BETWEEN.join(line.split(",")[:2]) for line in lines[1:21]]
    certificate = ac.load_certificate(run / "certificate.cert")
    for row in rows:
        if row["id"] in certificate:
            assert int(row["label"]) == certificate[row["id"]].label
            assert int(row["radius"]) == certificate[row["id"]].radius


def test_another_table_of_pairs_is_other_data(agnncert, run) -> None:
    table = run / "data" / "pairs.csv"
    table.write_text(table.read_text(encoding="utf-8").replace(",app,", ",web,", 1), encoding="utf-8")
    refused = agnncert("verify", run, "--require", "data,model")
    assert refused.status == 1
    assert "is not what the run was made from" in refused.out


def test_attacks_change_no_certified_label_and_some_others(agnncert, run) -> None:
    answer = agnncert("attack", run, "--sizes", "1,2", "--vary", "delete_edges", "--sample", "30", "--json")
    assert answer.status == 0, answer.err
    told = json.loads(answer.out)
    assert told["violations"] == 0
    assert sum(each["attacked_certified"] for each in told["rounds"]) > 10
    assert sum(each["fallen_others"] for each in told["rounds"]) > 0
    refused = agnncert("attack", run, "--kind", "gradient")
    assert (refused.status, "vote by vote" in said(refused)) == (2, True)


def test_two_runs_are_compared_and_handed_over(agnncert, run) -> None:
    same = agnncert("diff", run, run)
    assert (same.status, "Nothing changed" in same.out) == (0, True)
    assert "pair-votes" in agnncert("compare", run).out
    issued = agnncert("issue", run, "--by", "me")
    assert issued.status == 0
    assert "data and model were verified" in issued.out


REFUSED = {
    "a threshold": (("certify", "RUN", "--set", "false_positive_rate=0.01"), "fit chooses it on the validation pairs"),
    "a size at the end": (("certify", "RUN", "--size", "2"), "pass --size to agnncert train"),
    "a voting rule": (("certify", "RUN", "--prior", "3"), "cannot be given a voting rule"),
    "another division": (("certify", "RUN", "--division", "node"), "the targets are pairs of nodes"),
    "an audit": (("audit", "RUN"), "audit is for models of nodes and graphs"),
    "serving": (("serve", "RUN"), "cannot be kept up to date while the graph changes, because"),
    "a comparison": (("compare", "payments", "--set", "encode=auto"), "the targets of this data are pairs of nodes"),
    "nodes": (("train", "payments", "--division", "stacked", *SETTINGS), "the targets are pairs of nodes"),
    "a model of nodes": (("train", "payments", "--model", "gcn", *SETTINGS), "classifies nodes or graphs"),
    "a teacher": (("train", "payments", "--teach", "gcn", *SETTINGS), "teach is for models of nodes and graphs"),
    "a learning rate": (("train", "payments", "--set", "lr=0.1", *SETTINGS), "lr is for models of nodes and graphs"),
    "no model": (("certify", "payments", "--set", "encode=auto"), "nothing has been trained yet"),
    "ids of nodes": (("score", "RUN", "payments", "--ids", "payments/nodes.csv"), "List those to label in pairs.csv"),
    "text": (("train", "payments"), "--set encode=auto"),
}


@pytest.mark.parametrize(("words", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_command_that_cannot_be_about_pairs_says_why(agnncert, run, words, reason) -> None:
    answer = agnncert(*(run if word == "RUN" else word for word in words))
    assert answer.status == 2
    assert reason in said(answer)
    assert "Traceback" not in answer.err


def test_training_and_scoring_without_a_table_of_pairs_name_the_missing_file(agnncert, run) -> None:
    Path("payments/pairs.csv").unlink()
    for words in (("train", "payments", "--division", "pairs"), ("score", run, "payments")):
        answer = agnncert(*words)
        assert answer.status == 2
        assert "pairs.csv" in said(answer)


def test_pairs_beside_events_are_refused(agnncert, run) -> None:
    shutil.move("payments/edges.csv", "payments/events.csv")
    answer = agnncert("train", "payments")
    assert answer.status == 2
    assert "pairs are read beside a table of edges" in said(answer)


def test_a_trusted_column_makes_contacts_of_directed_edges(agnncert, run) -> None:
    lines = Path("payments/edges.csv").read_text(encoding="utf-8").splitlines()
    marked = [f"{line},{k % 2}" for k, line in enumerate(lines[1:])]
    Path("payments/edges.csv").write_text("\n".join(["source,target,known", *marked]) + "\n", encoding="utf-8")
    words = ("train", "payments", *SETTINGS, "--trusted", "known", "--out", "runs/trusted")
    undirected = agnncert(*words)
    assert (undirected.status, "edges must have a direction" in said(undirected)) == (2, True)
    assert agnncert(*words, "--set", "directed=true").status == 0
    assert agnncert("certify", "runs/trusted").status == 0
    certificate = ac.load_certificate("runs/trusted/certificate.cert")
    assert certificate.evidence.rule == "trusted"
    anyone = ac.Budget(inject_nodes=float("inf"), edges_per_injected=float("inf"))
    assert certificate.holds_against(anyone)[certificate.radius >= 0].all()
    assert agnncert("verify", "runs/trusted", "--require", "data,model").status == 0


def test_an_explanation_of_something_else_than_a_certified_pair_says_how_to_name_one(agnncert, run) -> None:
    first, second = str(ac.load_certificate(run / "certificate.cert").target[0]).split(BETWEEN)
    asked = {
        first: "give the ids of both nodes with a comma between them",
        f"{second},{first}": f'but the other direction: "{first},{second}"',
        f"{first},nobody": "only those of the test part are certified",
    }
    for text, hint in asked.items():
        answer = agnncert("explain", run, text)
        assert answer.status == 2
        assert hint in " ".join(answer.err.split())


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (lambda text: text.replace(",label", ",outcome_of_case", 1), "--set column.label="),
        (lambda text: text.replace(",fraud", ",genuine"), "training pairs have the same class, genuine"),
    ],
)
def test_pairs_without_classes_or_of_one_class_are_not_trained_on(agnncert, run, change, hint) -> None:
    file = Path("payments/pairs.csv")
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    answer = agnncert("train", "payments", *SETTINGS, "--out", "other")
    assert answer.status == 2
    assert hint in " ".join(answer.err.split())


def test_a_value_that_is_not_a_column_is_not_taken_for_a_setting(agnncert, run) -> None:
    answer = agnncert("train", "payments", *SETTINGS, "--set", "pair_feature=amonut", "--out", "other")
    assert answer.status == 2
    assert 'Did you mean "amount"?' in answer.err
    assert "column.amonut" not in answer.err
