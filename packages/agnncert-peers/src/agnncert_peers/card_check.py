"""Derives the numbers of cards again from the evidence that they name."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.votes import IntArray
from agnncert.errors import AgnncertError, CertificateError, SettingsError
from agnncert_peers.card_evidence import Evidence, read_evidence
from agnncert_peers.cards import DIGITS, PAIRS, SOME_TARGETS, Card, Run, budgets_of, mean_of, read_card


@dataclass(frozen=True)
class CardVerdict:
    """What became of a card.

    Attributes:
        file: The card.
        wrong: What is wrong; empty if nothing is.
        missing: Evidence that is not there, so that a number could not be derived again.
        derived: Numbers that were derived again and are as claimed.
        not_compared: Why targets and true classes could not be compared with the dataset; empty if they were, or if
            nobody asked for it.
    """

    file: Path
    wrong: tuple[str, ...]
    missing: tuple[str, ...]
    derived: int
    not_compared: str = ""

    @property
    def status(self) -> str:
        """``"wrong"``, ``"not derived again"`` if evidence is missing, or ``"derived again"``."""
        if self.wrong:
            return "wrong"
        return "not derived again" if self.missing else "derived again"


def card_files(folder: str | Path) -> list[Path]:
    """Lists the cards of a folder.

    Raises:
        SettingsError: There are none.
    """
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        raise SettingsError(f"there are no cards in {folder}: expected files that end in .json.")
    return files


@dataclass
class Known:
    """What was read before, so that cards that share evidence or a dataset read it once.

    Attributes:
        evidence: Evidence by its file and digest.
        datasets: Test parts by name of the dataset, split and seed.
    """

    evidence: dict[tuple[str, str], Evidence] = field(default_factory=dict)
    datasets: dict[tuple[str, str, int], "TestPart"] = field(default_factory=dict)


@dataclass(frozen=True)
class TestPart:
    """The targets of a dataset.

    Attributes:
        data_digest: Digest of graph, labels and split.
        graph_digest: Digest of the graph.
        ids: Ids of the test nodes, or rows of the test graphs.
        truth: Their true classes.
        num_training: Number of training nodes or graphs.
    """

    data_digest: str
    graph_digest: str
    ids: IntArray
    truth: IntArray
    num_training: int


def check_folder(folder: str | Path, root: str | Path | None = None) -> Iterator[CardVerdict]:
    """Checks all cards of a folder; evidence that several of them share is read once.

    Args:
        folder: Folder of the cards.
        root: Folder of the datasets; if given, targets and true classes are compared with the dataset too.
    """
    known = Known()
    seen: dict[str, Path] = {}
    for file in card_files(folder):
        verdict = check_card(file, root, known)
        if verdict.status != "wrong":
            first = seen.setdefault(read_card(file).stem, file)
            if first != file:
                verdict = CardVerdict(file, (f"it is about the same result as {first.name}",), (), 0)
        yield verdict


def check_card(file: str | Path, root: str | Path | None = None, known: Known | None = None) -> CardVerdict:
    """Derives every number of a card again from its evidence.

    Args:
        file: The card.
        root: Folder of the datasets; if given, targets and true classes are compared with the dataset too.
        known: What was read before, which this call adds to. Defaults to nothing.
    """
    path = Path(file)
    known = Known() if known is None else known
    try:
        card = read_card(path)
        for size in card.sizes:
            budgets_of(card.threat, size)
    except (AgnncertError, OSError) as error:
        return CardVerdict(path, (str(error),), (), 0)
    wrong: list[str] = []
    missing: list[str] = []
    derived = 0
    not_compared = "" if root is None else _why_not_compared(card)
    for run in card.runs:
        try:
            evidence = _evidence(path, run, known)
            if evidence is None:
                missing.append(f"seed {run.seed}: {_words_for_missing(run)}")
                continue
            reasons = list(_differences(card, run, evidence))
            if root is not None and not reasons and not not_compared:
                reasons = _against_dataset(card, run, evidence, root, known)
        except (AgnncertError, OSError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            reasons = [str(error)]
        wrong += [f"seed {run.seed}: {reason}" for reason in reasons]
        if not reasons:
            derived += len(card.sizes)
    wrong += _wrong_means(card)
    return CardVerdict(path, tuple(wrong), tuple(missing), derived, not_compared)


def _why_not_compared(card: Card) -> str:
    """Says why no dataset holds the targets of a card; empty if one does."""
    if card.protocol in PAIRS:
        return (
            f'the protocol "{card.protocol}" is about pairs of nodes, and no dataset that is loaded by name lists them'
        )
    return ""


def _words_for_missing(run: Run) -> str:
    if run.sha256 is None:
        return f"the {run.evidence} was not kept, so nobody can derive these numbers again"
    return f"the {run.evidence} {run.sha256[:16]}… is not in this folder"


def _wrong_means(card: Card) -> list[str]:
    """Lists what is wrong with the seeds, and with the claimed means over them."""
    wrong = []
    seeds = [run.seed for run in card.runs]
    if seeds != sorted(set(seeds)):
        wrong.append("seeds must ascend, each once")
    digests = [run.sha256 for run in card.runs if run.sha256 is not None]
    if len(set(digests)) < len(digests):
        wrong.append("two seeds name the same evidence, which is one run")
    for size, claimed, mean in zip(card.sizes, card.claimed, mean_of(card.runs), strict=True):
        if abs(claimed - mean) > 1.5 * 10**-DIGITS:
            wrong.append(f"at size {size} {claimed} is claimed, but the mean of its seeds is {mean:.5f}")
    return wrong


def _evidence(card: Path, run: Run, known: Known) -> Evidence | None:
    """Returns the evidence of a run; ``None`` if its file is not here."""
    if run.file is None or run.sha256 is None:
        return None
    file = card.parent / run.file
    if not file.is_file():
        return None
    if card.parent.resolve() not in file.resolve().parents:
        raise CertificateError(f"{run.file} is outside the folder of the card.")
    key = (str(file.resolve()), run.sha256)
    if key not in known.evidence:
        known.evidence[key] = read_evidence(file, run.sha256, run.evidence)
    return known.evidence[key]


def _differences(card: Card, run: Run, evidence: Evidence) -> Iterator[str]:
    """Yields what a run claims that its evidence does not say."""
    if evidence.guarantee != card.guarantee:
        yield f'the guarantee is "{evidence.guarantee}", the card says "{card.guarantee}"'
    if evidence.contents is not None and card.settings not in evidence.names:
        yield f'the settings are not those of the certificate, "{evidence.names[0]}"'
    if card.protocol in PAIRS and evidence.contents is not None and evidence.contents.claim.task != "pair":
        yield f'the protocol "{card.protocol}" is about pairs, the certificate about a {evidence.contents.claim.task}'
    yield from evidence.wrong_parts(card.defence, card.settings, card.control)
    if len(evidence.target) != run.targets:
        yield f"there are {len(evidence.target)} targets, the card says {run.targets}"
    for size, claimed in zip(card.sizes, run.certified, strict=True):
        share = evidence.share(card.threat, size, card.measure)
        if abs(share - claimed) > 0.5 * 10**-DIGITS + 1e-12:
            yield f"at size {size} the evidence proves {share:.5f}, the card claims {claimed}"


def _against_dataset(card: Card, run: Run, evidence: Evidence, root: str | Path, known: Known) -> list[str]:
    """Lists what differs between the evidence and the test part of the dataset that the card names."""
    key = (card.dataset, card.split, run.seed)
    if key not in known.datasets:
        known.datasets[key] = _read_test_part(card, run, root)
    expected = known.datasets[key]
    reasons = []
    if run.data not in ("", expected.data_digest):
        reasons.append("the dataset with this split has another digest than the card says")
    contents = evidence.contents
    if contents is not None and contents.claim.digests.get("graph") != expected.graph_digest:
        reasons.append("the certificate is about another graph than the dataset")
    if evidence.num_parts is not None and evidence.num_parts > expected.num_training:
        reasons.append(
            f"there are {evidence.num_parts:,} parts and {expected.num_training:,} training labels or graphs to divide"
        )
    order = np.argsort(evidence.target)
    expected_order = np.argsort(expected.ids)
    same_ids = np.array_equal(evidence.target[order], expected.ids[expected_order])
    same_truth = np.array_equal(evidence.truth[order], expected.truth[expected_order])
    if not same_ids or not same_truth:
        reasons.append("targets or true classes are not those of the test part")
    return reasons


def _read_test_part(card: Card, run: Run, root: str | Path) -> TestPart:
    """Loads the dataset that a card names, with the seed of a run."""
    from agnncert.datasets.load import load_dataset
    from agnncert.datasets.splits import GraphSet, dataset_digest
    from agnncert.graphs.canonical import canonical
    from agnncert.graphs.digest import graph_digest
    from agnncert.graphs.targets import prepared
    from agnncert.isolated.parts import training_rows_of

    data: Any = load_dataset(card.dataset, root=root, seed=run.seed, split=card.split or None)
    if isinstance(data, GraphSet):
        tested = prepared(data, data.test, compact=True).targets(data.test)
        return TestPart(
            data_digest=dataset_digest(data),
            graph_digest=tested.digests["graph"],
            ids=tested.ids,
            truth=data.y[data.test].numpy(),
            num_training=len(training_rows_of(data)),
        )
    rows = rows_of_targets(data.test_mask.nonzero().view(-1).numpy(), card.protocol)
    return TestPart(
        data_digest=dataset_digest(data),
        graph_digest=graph_digest(canonical(data)),
        ids=data.node_id[rows].numpy(),
        truth=data.y[rows].numpy(),
        num_training=int(data.train_mask.sum()),
    )


def rows_of_targets(rows: IntArray, protocol: str) -> IntArray:
    """Returns the rows of the test nodes that are targets: all of them, or as many as the protocol says."""
    number = SOME_TARGETS.get(protocol)
    if number is None or number >= len(rows):
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, number).astype(np.int64)])
