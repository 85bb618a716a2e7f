"""Result cards: one JSON file per result, whose numbers are derived again from the certificates that it names.

A card says which defence, threat, dataset, split and protocol a result is about, what it claims at each size, and which
files prove it. ``card_check`` reads these files with the verifier, derives every statement in them again, counts the
correct labels that hold against the threat's budgets, and compares the counts with the claimed numbers.
``card.schema.json`` describes the file for other programs. This module imports no torch.
"""

import json
import math
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.errors import CertificateError, SettingsError, did_you_mean
from agnncert.storage import parse_json, write_atomic

FORMAT = "agnncert-card"
VERSION = 1
SCHEMA = Path(__file__).parent / "card.schema.json"
DIGITS = 5  # of claimed shares
LARGEST_CARD = 2**20
HOW = (
    "agnncert cards check: the verifier derives every statement of the certificate again; the share of all targets "
    "with the true class as label that hold against the budgets of the threat is the number"
)
# What is averaged. Balanced accuracy is the mean of the shares of each true class, for classes of very different size.
MEASURES = ("accuracy", "balanced accuracy")
# What one unit of each threat is. A card can claim nothing about other budgets than these.
THREATS = {
    "features": "existing nodes, other than the target, given any features",
    "added edges": "edges added between existing nodes",
    "edges": "edges added or deleted between existing nodes",
    "edges and values": "edges between existing nodes added, deleted or given other values, in any mix",
    "injected nodes": "nodes injected with any features and up to 5 edges each",
    "nodes": "nodes injected with any features and any number of edges, or deleted",
    "any changes": "edges added or deleted, and nodes injected with any features and edges, deleted, or, other than "
    "the target, given any features, in any mix",
    "poisoned edges": "edges between existing nodes added or deleted, before training or after it",
    "flipped labels": "training labels replaced by another class before training",
    "changed labels": "training labels flipped, added or removed before training, in any mix",
    "poisoned graphs": "training graphs inserted, deleted or altered before training; an altered one counts twice "
    "where settings say ids=content",
}
# Threats about which cards are written only if they are asked for: large attacks can be spent in very many ways.
ON_REQUEST = frozenset({"nodes", "any changes"})
# Threats whose budgets speak of the graph after training, so that the certificate itself must cover training, too.
BEFORE_TRAINING = frozenset({"poisoned edges"})
PROTOCOLS = {
    "20 per class": "20 training and 20 validation nodes of each class; validation and test nodes unseen in training",
    "30 %": "30 % of the nodes to train, 10 % to validate, 60 % to test; all nodes seen in training, without labels",
    "30 %, 1,000 targets": "as 30 %; targets are 1,000 test nodes, evenly spaced in the order of rows",
    "graphs": "50 % of the graphs to train, 20 % to validate, 30 % to test",
    "links, uniform": "a tenth of the edges, at most 3,000, are tested, as many chosen on, and none of these is in the "
    "graph; as many pairs are no edges, drawn uniformly",
    "links, by degree": "as for links, uniform, but both ends of pairs that are no edges are drawn by degree",
    "ratings in time": "the last 40 % of all ratings, in windows of 1 %, each on the graph before it; trained on the "
    "fifth before them",
}


# The split of each protocol, as ``load_dataset`` names it. A protocol in other words may have any.
_SPLITS = {"20 per class": "20-per-class", "30 %": "", "30 %, 1,000 targets": "", "graphs": ""}
SOME_TARGETS = {"30 %, 1,000 targets": 1000}  # protocols about a part of the test nodes, and how many
PAIRS = ("links, uniform", "links, by degree", "ratings in time")  # protocols about pairs of nodes
GUARANTEES = ("deterministic", "probabilistic", "none")
EVIDENCE = ("certificate", "labels", "parts")
LARGEST_SEED = 2**63 - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")


def budgets_of(threat: str, size: int) -> list[Budget]:
    """Lists the budgets against which a target must hold, for a threat of some size.

    Example:
        >>> budgets_of("edges", 1)
        [Budget(add_edges=1), Budget(delete_edges=1)]
    """
    if threat not in _BUDGETS:
        raise SettingsError(f'no threat is called "{threat}": {did_you_mean(threat, THREATS)}')
    return _BUDGETS[threat](size)


def _added_or_deleted(size: int) -> list[Budget]:
    return [Budget(add_edges=size - deleted, delete_edges=deleted) for deleted in range(size + 1)]


def _mixes(size: int) -> list[tuple[int, int, int]]:
    """Lists all ways in which three numbers add up to a size."""
    return [(size - a - b, a, b) for a in range(size + 1) for b in range(size + 1 - a)]


def _any_changes(size: int) -> list[Budget]:
    return [
        Budget(add_edges=added, delete_edges=edges - added, inject_nodes=nodes, delete_nodes=gone, change_features=more)
        for left in range(size + 1)
        for edges, nodes, gone in _mixes(left)
        for added in range(edges + 1)
        for more in [size - left]
    ]


_BUDGETS: dict[str, Callable[[int], list[Budget]]] = {
    "features": lambda size: [Budget(change_features=size)],
    "added edges": lambda size: [Budget(add_edges=size)],
    "edges": _added_or_deleted,
    "edges and values": lambda size: [
        Budget(add_edges=added, delete_edges=deleted, change_edges=changed) for added, deleted, changed in _mixes(size)
    ],
    "injected nodes": lambda size: [Budget(inject_nodes=size, edges_per_injected=5)],
    "nodes": lambda size: [Budget(inject_nodes=size - gone, delete_nodes=gone) for gone in range(size + 1)],
    "any changes": _any_changes,
    "poisoned edges": _added_or_deleted,
    "flipped labels": lambda size: [Budget(flip_labels=size)],
    "changed labels": lambda size: [
        Budget(flip_labels=flipped, add_labels=added, remove_labels=removed) for flipped, added, removed in _mixes(size)
    ],
    "poisoned graphs": lambda size: [Budget(poison_graphs=size)],
}


@dataclass(frozen=True)
class Run:
    """One seed of a result.

    Attributes:
        seed: Seed of split, weights and samples.
        data: Digest of graph, labels and split (``ac.dataset_digest``); empty if it is not known. The certificate has
            that of the graph.
        targets: Number of targets.
        certified: Share of correct and certified targets at each size.
        evidence: ``"certificate"``; for controls ``"labels"``, which prove nothing, or ``"parts"``: votes of which one
            changed training label or graph alters one.
        sha256: Digest of the file with the evidence; ``None`` if nobody has that file any more.
        file: The file, relative to the card, packed if it ends in ``.xz``; ``None`` if it is kept elsewhere.
        seconds: Seconds of training and of certifying.
    """

    seed: int
    data: str
    targets: int
    certified: tuple[float, ...]
    evidence: str
    sha256: str | None
    file: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Card:
    """One result: a defence against a threat on a dataset, with all its seeds.

    Attributes:
        defence: Name of the defence.
        settings: Its settings.
        guarantee: ``"deterministic"``, ``"probabilistic"`` or ``"none"``.
        control: Whether it is a control, with which defences are compared.
        threat: One of ``THREATS``.
        dataset: Name of the dataset.
        split: The split as ``load_dataset`` names it; empty for the usual one.
        protocol: One of ``PROTOCOLS``, or another one in words.
        measure: One of ``MEASURES``: what the shares are averaged over.
        sizes: Sizes of the attack.
        claimed: Mean over the seeds of the certified share at each size.
        runs: The seeds.
        citation: Whom to cite for the defence.
        rederived: How the numbers are derived again.
    """

    defence: str
    settings: str
    guarantee: str
    control: bool
    threat: str
    dataset: str
    split: str
    protocol: str
    sizes: tuple[int, ...]
    claimed: tuple[float, ...]
    runs: tuple[Run, ...]
    citation: str
    measure: str = MEASURES[0]
    rederived: str = HOW

    @property
    def stem(self) -> str:
        """Name of its file without an ending.

        Cards with the same stem are about the same result.
        """
        words = "_".join((self.dataset, self.protocol, self.threat, self.defence)).lower()
        words = words.replace(" %", "-percent")
        return "".join(letter if letter.isalnum() or letter in "_-." else "-" for letter in words)

    def to_json(self) -> dict[str, Any]:
        """Returns the card as its file has it."""
        runs = [{**vars(run), "certified": list(run.certified), "seconds": dict(run.seconds)} for run in self.runs]
        own = {**vars(self), "sizes": list(self.sizes), "claimed": list(self.claimed), "runs": runs}
        if self.measure == MEASURES[0]:  # cards did not state it at first, and are written as they were
            del own["measure"]
        return {"format": FORMAT, "version": VERSION, **own}

    def save(self, folder: str | Path) -> Path:
        """Writes the card into a folder, and returns its file."""
        file = Path(folder) / f"{self.stem}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n")
        return file


_KINDS: dict[str, Any] = {
    "defence": str,
    "settings": str,
    "guarantee": str,
    "control": bool,
    "threat": str,
    "dataset": str,
    "split": str,
    "protocol": str,
    "sizes": list,
    "claimed": list,
    "runs": list,
    "citation": str,
    "measure": str,
    "rederived": str,
}
_RUN_KINDS: dict[str, Any] = {
    "seed": int,
    "data": str,
    "targets": int,
    "certified": list,
    "evidence": str,
    "sha256": (str, type(None)),
    "file": (str, type(None)),
    "seconds": dict,
}


def read_card(file: str | Path) -> Card:
    """Reads a card.

    Raises:
        CertificateError: It is not a card: says what was found and what is expected.
    """
    path = Path(file)
    stored = _read_json(path)
    if stored.get("format") != FORMAT or stored.get("version") != VERSION:
        raise CertificateError(f'{path} is no card: expected "format": "{FORMAT}" and "version": {VERSION}.')
    named = {name: value for name, value in stored.items() if name not in ("format", "version")}
    fields = {"measure": MEASURES[0], **named}
    _require_fields(path, "the card", fields, _KINDS)
    for run in fields["runs"]:
        if not isinstance(run, dict):
            raise CertificateError(f"{path}: a run is no object.")
        _require_fields(path, "a run", run, _RUN_KINDS)
        _require_run(path, run)
    _require_numbers(path, fields)
    _require_words(path, fields)
    fields["sizes"] = tuple(fields["sizes"])
    fields["claimed"] = tuple(fields["claimed"])
    fields["runs"] = tuple(Run(**{**run, "certified": tuple(run["certified"])}) for run in fields["runs"])
    return Card(**fields)


def _read_json(path: Path) -> dict[str, Any]:
    if path.stat().st_size > LARGEST_CARD:
        raise CertificateError(f"{path} has more than {LARGEST_CARD:,} bytes: it is no card.")
    try:
        stored = parse_json(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{path} is no JSON: {error}.") from error
    return stored if isinstance(stored, dict) else {}


def _require_run(path: Path, run: Mapping[str, Any]) -> None:
    """Refuses a run that no card can have, whether its evidence is here or not."""
    sha256 = run["sha256"]
    if run["file"] is not None and sha256 is None:
        raise CertificateError(f"{path}: a run names a file without its digest, so any file would do.")
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise CertificateError(
            f"{path}: the sha256 of a run is {reprlib.repr(sha256)}: expected 64 hexadecimal digits."
        )
    if run["evidence"] not in EVIDENCE:
        raise CertificateError(
            f"{path}: the evidence of a run is {reprlib.repr(run['evidence'])}: expected {EVIDENCE}."
        )
    if not 0 <= run["seed"] <= LARGEST_SEED:
        raise CertificateError(
            f"{path}: the seed of a run is {reprlib.repr(run['seed'])}: expected 0 to {LARGEST_SEED}."
        )
    if run["targets"] < 1:
        raise CertificateError(f"{path}: a run has {reprlib.repr(run['targets'])} targets: expected at least one.")
    for name, value in run["seconds"].items():
        is_number = type(value) in (int, float) and 0 <= value < math.inf and value <= LARGEST_SEED
        if not is_number:
            raise CertificateError(f"{path}: the seconds of {reprlib.repr(name)} are {reprlib.repr(value)}, no number.")


def _require_words(path: Path, fields: Mapping[str, Any]) -> None:
    """Refuses words that say something else than what is checked."""
    if fields["guarantee"] not in GUARANTEES:
        raise CertificateError(
            f"{path}: the guarantee is {reprlib.repr(fields['guarantee'])}: expected one of {GUARANTEES}."
        )
    if fields["measure"] not in MEASURES:
        raise CertificateError(f"{path}: the measure is {reprlib.repr(fields['measure'])}: expected one of {MEASURES}.")
    if fields["rederived"] != HOW:
        raise CertificateError(f'{path}: "rederived" does not say how numbers are derived again: "{HOW}".')
    wrong_split = check_protocol(fields["protocol"], fields["split"])
    if wrong_split:
        raise CertificateError(f"{path}: {wrong_split}")


def check_protocol(protocol: str, split: str) -> str:
    """Says that a split is not that of a protocol; empty if it is, or if the protocol is stated in other words."""
    expected = _SPLITS.get(protocol, split)
    if split == expected:
        return ""
    return f'the protocol "{protocol}" has the split "{expected}", not "{split}".'


def _require_numbers(path: Path, fields: Mapping[str, Any]) -> None:
    """Refuses sizes and shares that are no numbers, or not one for each size."""
    sizes = fields["sizes"]
    shares = [fields["claimed"], *(run["certified"] for run in fields["runs"])]
    one_for_each_size = all(len(row) == len(sizes) for row in shares)
    if not one_for_each_size or not fields["runs"] or not sizes:
        raise CertificateError(f"{path}: there must be a claimed number, and one of each run, for every size.")
    are_sizes = all(type(size) is int and 0 <= size <= 1000 for size in sizes)
    are_shares = all(type(share) in (int, float) and 0 <= share <= 1 for row in shares for share in row)
    if not are_sizes or not are_shares or sizes != sorted(set(sizes)):
        raise CertificateError(f"{path}: sizes are ascending whole numbers up to 1000, and shares lie between 0 and 1.")


def _require_fields(path: Path, what: str, fields: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    """Refuses other fields than the expected ones, and values of another type."""
    if set(fields) != set(kinds):
        odd = sorted(set(fields) ^ set(kinds))
        raise CertificateError(f"{path}: {what} has fields too many or too few: {', '.join(odd)[:200]}.")
    for name, kind in kinds.items():
        value = fields[name]
        is_flag_for_number = kind is int and isinstance(value, bool)
        if not isinstance(value, kind) or is_flag_for_number:
            raise CertificateError(f'{path}: "{name}" of {what} is a {type(value).__name__}.')


def mean_of(runs: Sequence[Run]) -> list[float]:
    """Returns the mean over the seeds at each size."""
    means = np.mean([run.certified for run in runs], axis=0)
    return [round(float(mean), DIGITS) for mean in means]
