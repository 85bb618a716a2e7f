"""Cards about poisoned training data and about pairs: each number follows from its evidence, and a false one is caught."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.errors import CertificateError
from agnncert_peers import card_evidence
from agnncert_peers.card_check import check_card, check_folder, rows_of_targets
from agnncert_peers.card_making import About, Stated, cards_of, labels_of, make_cards, parts_of, restated, threats_of
from agnncert_peers.cards import SCHEMA, budgets_of, read_card
from tests.support.mutations import each_mistake, text_turns_red

SIZES = (0, 1, 2)


def saved(certificate, folder: Path) -> Path:
    file = folder / "made.cert"
    certificate.save(file)
    return file


@pytest.fixture(scope="module")
def digits():
    data = ac.load_dataset("digits-knn")
    data.split_by = None  # cards are about attacks that leave their split as it is
    return data


def label_votes(data, candidates="all"):
    model = ac.fit(None, data, ac.LabelVotes(candidates=candidates, num_labels=539))
    return ac.certify(model, data, model.defence, data.test_mask.nonzero().view(-1)[:60])


@pytest.fixture(scope="module")
def votes_of_labels(digits, tmp_path_factory) -> Path:
    return saved(label_votes(digits), tmp_path_factory.mktemp("labels"))


@pytest.fixture(scope="module")
def blind(digits, tmp_path_factory) -> Path:
    defence = ac.StackedVotes(edge_blind=True, vote_weight=0.25, folds=2)
    model = ac.fit(ac.build_model("mlp", digits, hidden_channels=8), digits, defence, epochs=5)
    certificate = ac.certify(model, digits, model.defence, digits.test_mask.nonzero().view(-1)[:80])
    return saved(certificate, tmp_path_factory.mktemp("blind"))


@pytest.fixture(scope="module")
def apart(tmp_path_factory) -> Path:
    graphs = []
    for number in range(40):
        ring = torch.arange(5)
        edge_index = torch.stack([ring, (ring + 1) % 5])
        label = number % 2
        x = torch.stack([torch.sin(ring + number), torch.full((5,), 4.0 * label)], dim=1)
        graphs.append(Data(x=x, edge_index=edge_index, y=torch.tensor([label]), graph_id=f"ring {number}"))
    data = ac.GraphSet(graphs, train=range(30), test=range(30, 40), num_classes=2)
    defence = ac.IsolatedModels(num_models=3)
    model = ac.fit(ac.build_model("gin", data, hidden_channels=8), data, defence, epochs=15, lr=0.05)
    return saved(ac.certify(model, data, defence, data.test), tmp_path_factory.mktemp("apart"))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    torch.manual_seed(0)
    group = torch.randint(0, 3, (60,))
    near = ((group[:, None] == group) & (torch.rand(60, 60) < 0.5)).triu(1)
    links = near.nonzero().T
    others = (~(near | near.T)).triu(1).nonzero().T
    others = others[:, torch.randperm(others.size(1))[: links.size(1)]]
    data = Data(
        x=torch.nn.functional.one_hot(group, 3) + 0.5 * torch.randn(60, 3),
        edge_index=torch.cat([links, links.flip(0)], dim=1),
        edge_label_index=torch.cat([links, others], dim=1),
        edge_label=torch.tensor([1] * links.size(1) + [0] * others.size(1)),
    )
    part = torch.randint(0, 3, (data.edge_label.numel(),))
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    model = ac.fit(None, data, ac.PairVotes(size=1, epochs=5))
    return saved(ac.certify(model, data, model.defence, data.test_mask), tmp_path_factory.mktemp("pairs"))


def card_of(folder: Path, threat: str, defence: str = "mine") -> Path:
    return next(folder.glob(f"*_{threat.replace(' ', '-')}_{defence}.json"))


def make(file: Path, folder: Path, threats: tuple[str, ...], measure: str = "accuracy", protocol: str = "30 %"):
    about = About("mine", "some data", 0, "", protocol, measure=measure)
    make_cards(restated(file, threats, SIZES), about, folder, threats, SIZES)


def rewrite(file: Path, change) -> None:
    stored = json.loads(file.read_text())
    change(stored)
    file.write_text(json.dumps(stored))


def false_number(stored):
    share = stored["claimed"][1]
    stored["runs"][0]["certified"][1] = stored["claimed"][1] = round(share + (0.01 if share < 0.99 else -0.01), 5)


OF_KIND = {
    "votes_of_labels": ("flipped labels", "changed labels"),
    "blind": ("edges", "poisoned edges"),
    "apart": ("poisoned graphs",),
    "pairs": ("edges", "edges and values", "injected nodes"),
}


@pytest.mark.parametrize("kind", OF_KIND)
def test_numbers_are_those_of_the_certificate_and_false_ones_are_caught(kind, request, tmp_path):
    file = request.getfixturevalue(kind)
    make(file, tmp_path, OF_KIND[kind])
    certificate = ac.load_certificate(file)
    right = certificate.label == certificate.truth
    for threat in OF_KIND[kind]:
        made = card_of(tmp_path, threat)
        expected = [
            np.mean(right & np.all([certificate.holds_against(one) for one in budgets_of(threat, size)], axis=0))
            for size in SIZES
        ]
        assert read_card(made).claimed == pytest.approx(expected, abs=1e-5)
        assert expected[1] > 0
        jsonschema.validate(json.loads(made.read_text()), json.loads(SCHEMA.read_text()))
        assert check_card(made).status == "derived again"
        rewrite(made, false_number)
        assert "at size 1 the evidence proves" in check_card(made).wrong[0]


@pytest.mark.parametrize("kind", OF_KIND)
def test_the_command_makes_cards_of_the_threats_that_a_certificate_answers(kind, request, tmp_path):
    file = request.getfixturevalue(kind)
    assert set(OF_KIND[kind]) <= set(threats_of(ac.load_certificate(file)))
    made = cards_of(file, tmp_path, Stated(dataset="some data", seed=0), sizes=SIZES)
    assert set(OF_KIND[kind]) <= {read_card(each).threat for each in made}
    assert {verdict.status for verdict in check_folder(tmp_path)} == {"derived again"}


def test_threats_that_a_certificate_refuses_get_no_card(votes_of_labels, apart, digits):
    assert threats_of(ac.load_certificate(votes_of_labels)) == ("flipped labels", "changed labels")
    assert "changed labels" not in threats_of(label_votes(digits, "labelled"))
    assert "flipped labels" not in threats_of(ac.load_certificate(apart))


def test_a_card_about_poisoned_edges_needs_training_that_reads_none(digits, tmp_path):
    model = ac.fit(ac.build_model("mlp", digits, hidden_channels=8), digits, ac.StackedVotes(size=1, folds=2), epochs=5)
    certificate = ac.certify(model, digits, model.defence, digits.test_mask.nonzero().view(-1)[:80])
    assert "poisoned edges" not in threats_of(certificate)
    file = saved(certificate, tmp_path)
    with pytest.raises(CertificateError, match="trained on edges"):
        make(file, tmp_path, ("poisoned edges",))
    make(file, tmp_path, ("edges",))
    made = card_of(tmp_path, "edges")
    rewrite(made, lambda stored: stored.update(threat="poisoned edges"))
    assert "trained on edges" in check_card(made).wrong[0]


def test_labels_prove_nothing_about_poisoned_training_not_even_a_constant(tmp_path):
    about = About("constant", "some data", 0, "", "30 %", control=True)
    constant = labels_of([1, 2, 3, 4], [1, 1, 1, 1], [1, 1, 1, 0])
    threats = ("flipped labels", "changed labels", "poisoned graphs", "poisoned edges")
    for made in make_cards(constant, about, tmp_path, threats, SIZES, kind="labels"):
        assert read_card(made).claimed == (0.75, 0, 0)
        rewrite(made, false_number)
        assert check_card(made).status == "wrong"


def of_parts(number):
    """A control that divides its training labels into so many parts."""
    return About("parts", "some data", 0, "", "30 %", settings=f"a model on each of {number} parts", control=True)


def test_votes_of_parts_withstand_half_of_their_lead(tmp_path):
    votes = [
        [5, 2, 1],
        [2, 5, 1],
        [4, 4, 0],
        [3, 5, 0],
        [5, 3, 0],
    ]  # leads 3; 3 and a tie that is lost; 0; 2 less a tie; 2
    content = parts_of(["a", "b", "c", "d", "e"], votes, [0, 1, 0, 1, 0])
    about = of_parts(8)
    threats = ("flipped labels", "poisoned graphs", "edges")
    for made in make_cards(content, about, tmp_path, threats, SIZES, kind="parts"):
        card = read_card(made)
        assert card.claimed == ((1, 0, 0) if card.threat == "edges" else (1, 0.6, 0))
        assert check_card(made).status == "derived again"
        rewrite(made, false_number)
        assert "at size 1 the evidence proves" in check_card(made).wrong[0]


def test_a_card_of_parts_claims_what_brute_force_finds(tmp_path):
    """By brute force: every way to alter one or two of all votes, against what the card claims."""
    random = np.random.default_rng(3)
    cast = random.integers(0, 3, size=(40, 7))
    votes = [np.bincount(row, minlength=3).tolist() for row in cast]
    label = [int(np.argmax(row)) for row in votes]
    made = make_cards(parts_of(range(40), votes, label), of_parts(7), tmp_path, ("flipped labels",), SIZES, kind="parts")  # fmt: skip
    kept = []
    for row, own in zip(cast, label, strict=True):
        outcomes = set()
        for i in range(7):
            for j in range(i, 7):
                for a in range(3):
                    for b in range(3):
                        other = row.copy()
                        other[i], other[j] = a, b if i != j else a
                        outcomes.add((1 + int(i != j), int(np.bincount(other, minlength=3).argmax())))
        kept.append([all(found == own for number, found in outcomes if number <= size) for size in SIZES])
    assert read_card(made[0]).claimed == pytest.approx(np.mean(kept, axis=0), abs=1e-5)


@pytest.mark.parametrize(
    "votes", [[], [[1]], [[1, -1]], [[1, 2], [1]], [[1.5, 2]], [[True, False]], [[2**40, 0]], 3, [1, 2]]
)
def test_votes_that_make_no_sense_are_refused(votes, tmp_path):
    content = json.dumps({"target": [1], "votes": votes, "truth": [0]}).encode()
    with pytest.raises(CertificateError):
        make_cards(content, of_parts(3), tmp_path, ("flipped labels",), SIZES, kind="parts")


def test_votes_that_were_multiplied_are_found_because_the_card_states_fewer_parts(tmp_path):
    """A forger writes every vote a hundred times, raises all figures and names the digest of the new file."""
    honest = [[5, 2, 0], [2, 5, 0], [4, 3, 0]]
    truth = [0, 1, 0]
    made = make_cards(parts_of([1, 2, 3], honest, truth), of_parts(7), tmp_path, ("flipped labels",), SIZES, kind="parts")[0]  # fmt: skip
    assert check_card(made).status == "derived again"
    forged = parts_of([1, 2, 3], [[100 * number for number in row] for row in honest], truth)
    sha256 = hashlib.sha256(forged).hexdigest()
    (tmp_path / "certificates" / "forged.json").write_bytes(forged)

    def forge(stored):
        stored["runs"][0].update(sha256=sha256, file="certificates/forged.json", certified=[1, 1, 1])
        stored["claimed"] = [1, 1, 1]

    rewrite(made, forge)
    assert check_card(made).wrong == ("seed 0: there are 700 votes for each target, and the card states 7 parts",)
    rewrite(made, lambda stored: stored.update(settings="a model on each of 700 parts", defence="partitions, T=7"))
    assert "states 7 and 700 parts" in check_card(made).wrong[0]
    rewrite(made, lambda stored: stored.update(settings="a model on each part", defence="partitions"))
    assert "states no number of parts" in check_card(made).wrong[0]


def test_a_target_with_more_votes_than_others_is_refused(tmp_path):
    content = parts_of([1, 2], [[5, 2], [50, 20]], [0, 0])
    with pytest.raises(CertificateError, match=r"targets with 7 and with 70 votes"):
        make_cards(content, of_parts(7), tmp_path, ("flipped labels",), SIZES, kind="parts")


def test_votes_of_parts_are_evidence_of_controls_alone(tmp_path):
    content = parts_of([1, 2], [[5, 2], [6, 1]], [0, 0])
    with pytest.raises(CertificateError, match="of controls alone"):
        make_cards(content, replace(of_parts(7), control=False), tmp_path, ("flipped labels",), SIZES, kind="parts")
    made = make_cards(content, of_parts(7), tmp_path, ("flipped labels",), SIZES, kind="parts")[0]
    rewrite(made, lambda stored: stored.update(control=False))
    assert "of controls alone" in check_card(made).wrong[0]


def test_there_are_not_more_parts_than_the_dataset_has_training_labels(digits, tmp_path):
    rows = digits.test_mask.nonzero().view(-1)
    number = int(digits.train_mask.sum())
    for parts, status in ((number, "derived again"), (number + 1, "wrong")):
        about = replace(of_parts(parts), dataset="digits-knn", data=ac.dataset_digest(digits))
        votes = [[parts, *[0] * 9]] * len(rows)
        content = parts_of(digits.node_id[rows].tolist(), votes, digits.y[rows].tolist())
        made = make_cards(content, about, tmp_path, ("flipped labels",), SIZES, kind="parts")[0]
        assert check_card(made).status == "derived again"
        verdict = check_card(made, root=tmp_path)
        assert verdict.status == status
    assert verdict.wrong == (f"seed 0: there are {number + 1:,} parts and {number:,} training labels or graphs to divide",)  # fmt: skip


def test_balanced_accuracy_is_the_mean_over_classes(tmp_path):
    content = parts_of([1, 2, 3, 4], [[9, 0], [9, 0], [9, 0], [9, 0]], [0, 0, 0, 1])
    about = replace(of_parts(9), measure="balanced accuracy")
    made = make_cards(content, about, tmp_path, ("flipped labels",), SIZES, kind="parts")[0]
    assert read_card(made).claimed == (0.5, 0.5, 0.5)
    rewrite(made, lambda stored: stored.pop("measure"))
    assert "at size 0 the evidence proves 0.75" in check_card(made).wrong[0]
    rewrite(made, lambda stored: stored.update(measure="luck"))
    assert "the measure is 'luck'" in check_card(made).wrong[0]


def test_a_verdict_about_pairs_says_that_no_dataset_was_compared(pairs, tmp_path):
    make(pairs, tmp_path, ("edges",), protocol="links, uniform")
    verdict = check_card(card_of(tmp_path, "edges"), root=tmp_path)
    assert (verdict.status, "pairs of nodes" in verdict.not_compared) == ("derived again", True)


def test_a_card_about_nodes_with_the_protocol_of_pairs_is_found(votes_of_labels, tmp_path):
    make(votes_of_labels, tmp_path, ("flipped labels",), protocol="links, uniform")
    verdict = check_card(card_of(tmp_path, "flipped labels"), root=tmp_path)
    assert any("is about pairs, the certificate about a node" in reason for reason in verdict.wrong)


def test_a_card_about_changed_labels_is_refused_if_some_labels_are_audited(digits, tmp_path):
    model = ac.fit(None, digits, ac.LabelVotes(audited=digits.train_mask))
    certificate = ac.certify(model, digits, model.defence, digits.test_mask.nonzero().view(-1)[:60])
    assert certificate.holds_against(ac.Budget(flip_labels=2)).all()
    with pytest.raises(CertificateError, match="labels are audited"):
        make(saved(certificate, tmp_path), tmp_path, ("flipped labels",))


def test_targets_of_a_part_of_the_test_nodes_are_compared(digits, votes_of_labels, tmp_path):
    rows = np.arange(5000)
    assert len(np.unique(rows_of_targets(rows, "30 %, 1,000 targets"))) == 1000
    assert np.array_equal(rows_of_targets(rows, "30 %"), rows)
    targets = digits.test_mask.nonzero().view(-1)[
        rows_of_targets(np.arange(int(digits.test_mask.sum())), "30 %, 1,000 targets")
    ]
    model = ac.fit(None, digits, ac.LabelVotes())
    file = saved(ac.certify(model, digits, model.defence, targets), tmp_path)
    about = About("mine", "digits-knn", 0, ac.dataset_digest(digits), "30 %, 1,000 targets")
    made = make_cards(restated(file, ("flipped labels",), SIZES), about, tmp_path, ("flipped labels",), SIZES)[0]
    assert check_card(made, root=tmp_path).status == "derived again"
    about = replace(about, protocol="30 %", defence="others")
    made = make_cards(restated(file, ("flipped labels",), SIZES), about, tmp_path, ("flipped labels",), SIZES)[0]
    assert "not those of the test part" in check_card(made, root=tmp_path).wrong[0]


def test_targets_of_graphs_are_compared_with_the_dataset(tmp_path):
    data = ac.load_dataset("digits-grid")
    tests, truth = data.test.tolist(), data.y[data.test].tolist()
    about = replace(of_parts(9), dataset="digits-grid", data=ac.dataset_digest(data), protocol="graphs")
    votes = [[9, *[0] * 9]] * len(tests)
    made = make_cards(parts_of(tests, votes, truth), about, tmp_path, ("poisoned graphs",), SIZES, kind="parts")[0]
    assert check_card(made, root=tmp_path).status == "derived again"
    others = parts_of([row + 1 for row in tests], votes, truth)
    made = make_cards(others, about, tmp_path, ("poisoned graphs",), SIZES, kind="parts")[0]
    assert "not those of the test part" in check_card(made, root=tmp_path).wrong[0]


def test_cards_of_graphs_name_their_protocol(apart, tmp_path):
    made = cards_of(apart, tmp_path, Stated(dataset="some data", seed=0), sizes=SIZES)
    assert {read_card(each).protocol for each in made} == {"graphs"}


# Mistakes in how cards are checked, each of which a test must notice.
MISTAKES = [
    ("flipped labels are harmless", test_labels_prove_nothing_about_poisoned_training_not_even_a_constant, card_evidence, "(*COUNTS, *TRAINING) if", "COUNTS if"),
    ("a constant withstands poisoned training", test_labels_prove_nothing_about_poisoned_training_not_even_a_constant, card_evidence, "(is_constant and trusts_training)", "is_constant"),
    ("a constant withstands poisoned edges", test_labels_prove_nothing_about_poisoned_training_not_even_a_constant, card_evidence, "self.contents is None and not _is_harmless(budget):", "False:"),
    ("an altered vote costs one", test_a_card_of_parts_claims_what_brute_force_finds, card_evidence, "rivals.min(axis=1) // 2", "rivals.min(axis=1)"),
    ("ties are won by the label", test_votes_of_parts_withstand_half_of_their_lead, card_evidence, " - votes - (classes < label[:, None])", " - votes"),
    ("parts withstand changes of the graph", test_votes_of_parts_withstand_half_of_their_lead, card_evidence, "if not _is_harmless(at_test_time):", "if False:"),
    ("votes may be more than the parts", test_votes_that_were_multiplied_are_found_because_the_card_states_fewer_parts, card_evidence, "elif stated != {self.num_parts}:", "elif False:"),
    ("settings need not name the parts", test_votes_that_were_multiplied_are_found_because_the_card_states_fewer_parts, card_evidence, "if not stated:", "if False:"),
    ("targets may have more votes than others", test_a_target_with_more_votes_than_others_is_refused, card_evidence, "if len(cast) > 1:", "if False:"),
    ("defences may state votes of parts", test_votes_of_parts_are_evidence_of_controls_alone, card_evidence, "if not is_control:", "if False:"),
    ("every measure is accuracy", test_balanced_accuracy_is_the_mean_over_classes, card_evidence, "if measure == MEASURES[0]:", "if True:"),
]  # fmt: skip


@each_mistake(MISTAKES)
def test_a_mistake_is_noticed(monkeypatch, tmp_path, mistake):
    mistake.turns_red(monkeypatch, tmp_path)


def test_it_is_noticed_if_any_certificate_counts_as_training_without_edges(monkeypatch, tmp_path):
    digits = ac.load_dataset("digits-knn", split="by-id")
    text_turns_red(
        monkeypatch,
        card_evidence,
        'self.contents.settings.get("edge_blind") is True',
        "self.contents is not None",
        lambda: test_a_card_about_poisoned_edges_needs_training_that_reads_none(digits, tmp_path),
    )


def test_the_mixes_of_changes_are_all_there():
    """Every way to change at most three labels is one of the budgets, or below one."""
    budgets = budgets_of("changed labels", 3)
    wanted = [
        ac.Budget(flip_labels=flipped, add_labels=added, remove_labels=removed)
        for flipped in range(4)
        for added in range(4 - flipped)
        for removed in range(4 - flipped - added)
    ]
    assert all(any(budget.allows(one) for budget in budgets) for one in wanted)
    assert all(budget.flip_labels + budget.add_labels + budget.remove_labels == 3 for budget in budgets)


def test_evidence_of_parts_is_made_once_for_each_seed(tmp_path):
    content = parts_of([1, 2], [[3, 0], [0, 3]], [0, 1])
    for seed in (0, 1):
        files = make_cards(
            content, replace(of_parts(3), seed=seed), tmp_path, ("flipped labels",), (0, 1), kind="parts"
        )
    assert "two seeds name the same evidence" in check_card(files[0]).wrong[0]
