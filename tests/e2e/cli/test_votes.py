"""Votes with a prior, and one group per neighbour, from the command line: a run folder remembers them, every command knows."""

import json
import random
import tomllib
from pathlib import Path

import numpy as np
import pytest

import agnncert as ac
from agnncert.cli import certify_step
from agnncert.divided import defence
from agnncert.report.summary import AT_MOST
from agnncert_peers.possible import possible
from tests.support.commands import write_tables


def write_graphs(folder: Path, graphs: int = 60) -> Path:
    """Graphs whose class is their size, and nothing else: all nodes look alike."""
    rng = random.Random(0)
    nodes, edges, labels = ["graph,id,a"], ["graph,source,target"], ["graph,label"]
    for g in range(graphs):
        size = rng.randrange(3, 9) + 14 * (g % 2)
        labels.append(f"g{g},{'large' if g % 2 else 'small'}")
        nodes += [f"g{g},g{g}n{k},1.0" for k in range(size)]
        edges += [f"g{g},g{g}n{k},g{g}n{k + 1}" for k in range(size - 1)]
    folder.mkdir()
    for name, lines in (("nodes", nodes), ("edges", edges), ("graphs", labels)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def stored(folder: Path, step: str) -> dict:
    return tomllib.loads((folder / "settings.toml").read_text())[step]


def told(answer) -> dict:
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def test_one_group_per_neighbour_with_a_prior_from_training_to_repetition(agnncert) -> None:
    folder = Path("runs/own")
    words = ("--division", "per-neighbour", "--prior", 3, "--epochs", 3, "--no-references", "--out", folder)
    assert agnncert("train", "tables", *words).status == 0
    answer = told(agnncert("certify", folder, "--json"))
    assert answer["voting_rule"] == {"empty": "abstain", "prior": 3}
    assert answer["division"] == "node-centric(T=inf)"
    assert stored(folder, "train")["division"] == stored(folder, "certify")["division"] == "per-neighbour"
    assert stored(folder, "certify")["prior"] == "3"
    certificate = ac.load_certificate(folder / "certificate.cert")
    assert (certificate.structure_radius > certificate.radius).any()
    sizes = {row["size"] for row in answer["results"] if row["measure"] == "certified accuracy, added or deleted only"}
    assert 0 in sizes
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "3 for what the model predicts from the node" in page
    assert agnncert("verify", folder, "--recheck", 20).status == 0
    attacked = told(agnncert("attack", folder, "--sizes", "2,9", "--sample", 8, "--json"))
    assert attacked["violations"] == 0
    assert sum(each["fallen_others"] for each in attacked["rounds"]) > 0, "the attack broke nothing: it shows nothing"
    assert "VotingRule(empty='abstain', prior=3)" in agnncert("compare", folder).out


def test_a_trained_run_is_certified_with_another_vote_and_attacked_as_it_was_certified(agnncert, trained) -> None:
    voting_rule = ("--division", "edge", "--groups", 9, "--empty", 1, "--prior", "2,0")
    assert told(agnncert("certify", trained, *voting_rule, "--json"))["voting_rule"] == {"empty": 1, "prior": [2, 0]}
    assert agnncert("verify", trained, "--recheck", 20).status == 0
    answer = agnncert("attack", trained, "--sizes", "1,20", "--sample", 12, "--json")
    assert told(answer)["violations"] == 0
    rows = [json.loads(line) for line in (trained / "results.jsonl").read_text().splitlines()]
    divisions = {row["division"] for row in rows if row["step"] == "attack"}
    assert divisions == {"edge-centric(T=9, hash=md5, key=u64le), VotingRule(empty=1, prior=(2, 0))"}


def test_classes_are_called_by_the_names_that_the_data_gives_them(agnncert) -> None:
    write_graphs(Path("sizes"), 40)
    words = ("--division", "edge", "--groups", 9, "--epochs", 1, "--no-references", "--out", "runs/named")
    assert agnncert("train", "sizes", *words, "--empty", "small", "--prior", "large=2").status == 0
    assert stored(Path("runs/named"), "train")["prior"] == "large=2"
    answer = told(agnncert("certify", "runs/named", "--empty", "large", "--prior", "small=3", "--no-report", "--json"))
    assert answer["voting_rule"] == {"empty": 0, "prior": [0, 3]}
    unknown = agnncert("certify", "runs/named", "--prior", "smal=3")
    assert unknown.status == 2
    assert 'no class is called "smal": did you mean "small"? Valid: large, small.' in " ".join(unknown.err.split())


def test_a_vote_is_chosen_for_a_size_and_the_answer_by_size_alone_is_certified_where_it_is_as_good(agnncert) -> None:
    write_graphs(Path("sizes"))
    folder = Path("runs/sizes")
    words = ("--division", "edge", "--groups", 30, "--epochs", 1, "--no-references", "--out", folder)
    assert agnncert("train", "sizes", *words).status == 0
    answer = told(agnncert("certify", folder, "--size", 2, "--json"))
    choice = json.loads((folder / "voting_rule.json").read_text())
    best = next(one for one in choice["candidates"] if one["chosen"])
    assert best["decides"] == "size only"
    constant = ac.load_model(folder / "certified.safetensors")
    assert constant.config["out_channels"] == 2
    assert answer["voting_rule"] == {"empty": best["empty"], "prior": best["prior"]}
    assert answer["division"] == best["division"]
    certificate = ac.load_certificate(folder / "certificate.cert")
    assert certificate.certified_accuracy(sizes=2) > 0.8
    assert "How this way of counting was chosen" in (folder / "report.html").read_text(encoding="utf-8")
    assert "| what decides | size only |" in (folder / "MODEL_CARD.md").read_text()
    assert agnncert("verify", folder, "--recheck", 20).status == 0
    assert told(agnncert("attack", folder, "--sizes", "1,12", "--sample", 4, "--json"))["violations"] == 0
    # A later certification without a size is of the trained model, and forgets the choice.
    assert agnncert("certify", folder, "--no-report").status == 0
    assert not (folder / "voting_rule.json").exists()
    assert not list(folder.glob("certified.*"))
    plain = ac.load_certificate(folder / "certificate.cert")
    assert plain.voting_rule == ac.VotingRule("abstain")
    assert plain.claim.digests["model"] != certificate.claim.digests["model"]
    assert agnncert("verify", folder, "--recheck", 5).status == 0


@pytest.mark.parametrize("description", ["{}", '{"format": "agnncert-model-1", "model": {"name": "gcn"}}', "nonsense"])
def test_a_damaged_choice_is_no_model(agnncert, certified, description) -> None:
    (certified / "certified.safetensors").write_bytes(b"no weights")
    (certified / "certified.json").write_text(description)
    answer = agnncert("verify", certified, "--recheck", 5)
    assert answer.status == 2
    assert "certified.safetensors is damaged: certify again" in " ".join(answer.err.split())


def test_training_for_a_size_is_refused_for_graphs(agnncert) -> None:
    write_graphs(Path("sizes"), 40)
    words = ("--set", "objective=certified", "--size", 1, "--division", "edge", "--groups", 10, "--epochs", 1)
    answer = agnncert("train", "sizes", *words, "--no-references", "--out", "runs/for-1")
    assert answer.status == 2
    assert "is for node classification" in answer.err


def test_nodes_are_trained_for_a_size_and_what_it_counts_is_remembered(agnncert) -> None:
    words = ("--set", "objective=certified", "--size", 1, "--set", "against=structure", "--division", "per-neighbour")
    more = ("--set", "protocol=held-out", "--epochs", 2, "--no-references", "--out", "runs/nodes")
    assert agnncert("train", "tables", *words, *more).status == 0
    assert agnncert("certify", "runs/nodes", "--no-report").status == 0
    certified = stored(Path("runs/nodes"), "certify")
    assert (certified["size"], certified["against"]) == (1, "structure")
    assert json.loads(Path("runs/nodes/voting_rule.json").read_text())["against"] == "structure"


def test_a_model_of_ones_own_is_certified_with_a_vote(agnncert) -> None:
    words = ("--model", "mine:build", "--division", "per-edge", "--empty", 0, "--prior", "1,6")
    answer = told(agnncert("certify", "tables", *words, "--no-report", "--json"))
    assert answer["voting_rule"] == {"empty": 0, "prior": [1, 6]}
    first = ac.load_certificate(answer["certificate"])
    assert agnncert("certify", answer["run"], "--model", "mine:build", "--no-report").status == 0
    again = ac.load_certificate(answer["certificate"])
    assert np.array_equal(again.radius, first.radius)
    assert again.voting_rule == first.voting_rule


def test_defences_are_compared_under_another_vote_and_for_a_size(agnncert) -> None:
    words = ("compare", "tables", "--sizes", "0,1", "--epochs", 1, "--no-references", "--json")
    given = told(agnncert(*words, "--defence", "per-neighbour", "--prior", 3))
    assert [row["vote"] for row in given["rows"]] == ["empty abstain, prior 3"]
    chosen = told(agnncert(*words, "--defence", "edge:num_groups=6", "--size", 1))
    assert [row["design_size"] for row in chosen["rows"]] == [1]
    both = agnncert(*words, "--size", 1, "--prior", 3)
    assert both.status == 2
    assert "--size chooses the voting rule" in both.err


def test_a_threshold_is_chosen_for_a_false_positive_rate_or_a_number_of_alerts(agnncert, trained) -> None:
    for limit in ("false_positive_rate=0.5", "alerts=2"):
        answer = agnncert("certify", trained, "--set", limit, "--size", 1, "--no-report")
        assert answer.status == 0, answer.err
        (chosen,) = json.loads((trained / "voting_rule.json").read_text())["candidates"]
        voting_rule = ac.load_certificate(trained / "certificate.cert").voting_rule
        assert list(voting_rule.class_prior or [0, 0]) == list(chosen["prior"] or [0, 0])
        assert "| what decides | threshold |" in (trained / "MODEL_CARD.md").read_text()
        assert "alerts of class" in answer.out + answer.err
    refused = agnncert("certify", trained, "--set", "alerts=2", "--prior", "3")
    assert (refused.status, "leave out --empty and --prior" in refused.err) == (2, True)
    assert "measure" in agnncert("certify", trained, "--size", 1, "--set", "measure=balance").err


def test_the_vote_of_a_rare_class_is_chosen_by_balanced_accuracy_unasked(agnncert, place, monkeypatch) -> None:
    given = []
    choose = defence.choose_voting_rule
    monkeypatch.setattr(defence, "choose_voting_rule", lambda *a, **k: given.append(k["measure"]) or choose(*a, **k))
    nodes = write_tables(place / "tables", nodes=100) / "nodes.csv"
    text = nodes.read_text().replace("cat", "dog").splitlines()
    rows = [row.replace("dog", "cat") if k % 25 == 1 else row for k, row in enumerate(text)]
    nodes.write_text("\n".join(rows) + "\n")
    assert (
        agnncert("train", "tables", "--groups", 4, "--epochs", 1, "--no-references", "--out", "runs/rare").status == 0
    )
    for words in ((), ("--set", "measure=accuracy")):
        assert agnncert("certify", "runs/rare", "--size", 1, "--no-report", *words).status == 0
    assert given == ["balanced", "accuracy"]


class Offered:
    """An entry point of an installed package."""

    def __init__(self, function) -> None:
        self.load = lambda: function


def test_a_run_keeps_what_is_possible_and_shows_it_only_if_a_package_says_so(agnncert, place, monkeypatch) -> None:
    write_graphs(Path("graphs"))
    words = ("--division", "node", "--groups", 5, "--epochs", 2, "--no-references", "--out", "runs/graphs")
    assert agnncert("train", "graphs", *words).status == 0
    monkeypatch.setattr(certify_step, "addons", lambda group: {"possible": Offered(possible)})
    monkeypatch.setattr(certify_step, "SIZES", (0, 1, 4, 6, 9))
    folder, name = Path("runs/graphs"), f"{AT_MOST} (nodes injected, deleted or given other features)"
    answer = told(agnncert("certify", folder, "--json"))
    kept = {row["size"]: row["value"] for row in answer["results"] if row["measure"] == name}
    assert kept, "nothing was computed"
    # Small ones have at most 8 nodes and large ones at least 17: with 4 changes each they stay 1 apart.
    assert all(value == 1.0 for size, value in kept.items() if size <= 4)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f'"name":"{name}"' in page
    for text in (answer["sentences"][1], agnncert("show", folder / "certificate.cert").out, page):
        assert "A classifier that also reads edges is not bounded by this." in text
    assert AT_MOST in (folder / "results.csv").read_text(encoding="utf-8")
    monkeypatch.setattr(certify_step, "addons", lambda group: {})
    told(agnncert("certify", folder, "--json"))
    assert AT_MOST not in (folder / "report.html").read_text(encoding="utf-8")


def test_a_rate_is_guaranteed_from_the_command_line(agnncert, tmp_path) -> None:
    run = tmp_path / "run"
    settings = ("keep=0.5", "keep_for=fraud", "epochs=6", "evaluate_every=3", "num_layers=1", "references=false")
    words = [word for setting in settings for word in ("--set", setting)]
    named = ("--division", "per-neighbour", "--model", "sage", "--out", run)
    assert agnncert("train", "accounts-generated", *named, *words).status == 0
    guaranteed = ("--false-positive-rate", 0.05, "--confidence", 0.95, "--no-report")
    certified = agnncert("certify", run, *guaranteed)
    assert certified.status == 0
    assert "with 95 % confidence: of 959 that were kept for the threshold" in certified.out
    assert "at most 5 % of the targets of other classes get the label 1" in agnncert("show", run).out
    verified = agnncert("verify", run, "--data", run, "--require", "data,model")
    assert verified.status == 0
    assert "how many of 959 targets kept for the threshold get the positive label" in verified.out
    again = agnncert("certify", run, *guaranteed)
    assert again.status == 0  # the same accounts are kept when the data is read again
    few = agnncert("certify", run, "--false-positive-rate", 0.0001, "--confidence", 0.95)
    assert few.status != 0
    assert "29,956 are needed" in few.err
    plain = agnncert("certify", run, "--confidence", 0.95)
    assert "pass --false-positive-rate too" in plain.err
