"""Result cards: one JSON file per result, whose numbers are derived again from the certificates that it names.

A card says which defence, threat, dataset, split and protocol a result is about, what it claims at each size, and which
files prove it. ``check_card`` reads these files with the verifier, derives every statement in them again, counts the
correct labels that hold against the threat's budgets, and compares the counts with the claimed numbers.
``card.schema.json`` describes the file for other programs. Imports no torch, unless the graph is to be compared too.
"""

import hashlib
import json
import lzma
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.errors import AgnncertError, CertificateError, SettingsError, did_you_mean
from agnncert.storage import write_atomic
from agnncert.verdict import check_file

FORMAT, VERSION = "agnncert-card", 1
SCHEMA = Path(__file__).parent / "card.schema.json"
DIGITS = 5  # of claimed shares
LARGEST_FILE = 2**28  # bytes of an unpacked certificate
LARGEST_CARD = 2**20
HOW = (
    "agnncert cards check: the verifier derives every statement of the certificate again; the share of all targets "
    "with the true class as label that hold against the budgets of the threat is the number"
)
# What one unit of each threat is. A card can claim nothing about other budgets than these.
THREATS = {
    "features": "existing nodes, other than the target, given any features",
    "added edges": "edges added between existing nodes",
    "edges": "edges added or deleted between existing nodes",
    "injected nodes": "nodes injected with any features and up to 5 edges each",
}
PROTOCOLS = {
    "20 per class": "20 training and 20 validation nodes of each class; validation and test nodes unseen in training",
    "30 %": "30 % of the nodes to train, 10 % to validate, 60 % to test; all nodes seen in training, without labels",
}


def budgets_of(threat: str, size: int) -> list[Budget]:
    """The budgets against which a target must hold, for a threat of some size.

    Example:
        >>> budgets_of("edges", 1)
        [Budget(add_edges=1), Budget(delete_edges=1)]
    """
    match threat:
        case "features":
            return [Budget(change_features=size)]
        case "added edges":
            return [Budget(add_edges=size)]
        case "edges":
            return [Budget(add_edges=size - deleted, delete_edges=deleted) for deleted in range(size + 1)]
        case "injected nodes":
            return [Budget(inject_nodes=size, edges_per_injected=5)]
    raise SettingsError(f'no threat is called "{threat}": {did_you_mean(threat, THREATS)}')


@dataclass(frozen=True)
class Run:
    """One seed of a result.

    Attributes:
        seed: Seed of split, weights and samples.
        data: Digest of graph, labels and split (``ac.dataset_digest``); empty if it is not known. The certificate has
            that of the graph.
        targets: Number of targets.
        certified: Share of correct and certified targets at each size.
        evidence: ``"certificate"``, or ``"labels"`` for a control without a proof.
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
    rederived: str = HOW

    @property
    def stem(self) -> str:
        """Name of its file without an ending.

        Cards with the same stem are about the same result.
        """
        words = "_".join((self.dataset, self.protocol, self.threat, self.defence)).lower()
        return "".join(one if one.isalnum() or one in "_-." else "-" for one in words.replace(" %", "-percent"))

    def to_json(self) -> dict[str, Any]:
        """The card as its file has it."""
        runs = [{**vars(run), "certified": list(run.certified), "seconds": dict(run.seconds)} for run in self.runs]
        own = {**vars(self), "sizes": list(self.sizes), "claimed": list(self.claimed), "runs": runs}
        return {"format": FORMAT, "version": VERSION, **own}

    def save(self, folder: str | Path) -> Path:
        """Writes the card into a folder, and returns its file."""
        file = Path(folder) / f"{self.stem}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n")
        return file


_KINDS: dict[str, Any] = {
    "defence": str, "settings": str, "guarantee": str, "control": bool, "threat": str, "dataset": str, "split": str,
    "protocol": str, "sizes": list, "claimed": list, "runs": list, "citation": str, "rederived": str,
}  # fmt: skip
_RUN_KINDS: dict[str, Any] = {
    "seed": int, "data": str, "targets": int, "certified": list, "evidence": str,
    "sha256": (str, type(None)), "file": (str, type(None)), "seconds": dict,
}  # fmt: skip


def read_card(file: str | Path) -> Card:
    """Reads a card.

    Raises:
        CertificateError: It is not a card: says what was found and what is expected.
    """
    path = Path(file)
    if path.stat().st_size > LARGEST_CARD:
        raise CertificateError(f"{path} has more than {LARGEST_CARD:,} bytes: it is no card.")
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{path} is no JSON: {error}.") from error
    if not isinstance(stored, dict) or stored.get("format") != FORMAT or stored.get("version") != VERSION:
        raise CertificateError(f'{path} is no card: expected "format": "{FORMAT}" and "version": {VERSION}.')
    own = {name: value for name, value in stored.items() if name not in ("format", "version")}
    _require_fields(path, "the card", own, _KINDS)
    for run in own["runs"]:
        if not isinstance(run, dict):
            raise CertificateError(f"{path}: a run is no object.")
        _require_fields(path, "a run", run, _RUN_KINDS)
        if run["file"] is not None and run["sha256"] is None:
            raise CertificateError(f"{path}: a run names a file without its digest, so any file would do.")
    numbers = [own["sizes"], own["claimed"], *(run["certified"] for run in own["runs"])]
    if len({len(row) for row in numbers}) != 1 or not own["runs"] or not own["sizes"]:
        raise CertificateError(f"{path}: there must be a claimed number, and one of each run, for every size.")
    whole = all(type(size) is int and 0 <= size <= 1000 for size in own["sizes"])
    shares = all(type(one) in (int, float) and 0 <= one <= 1 for row in numbers[1:] for one in row)
    if not whole or own["sizes"] != sorted(set(own["sizes"])) or not shares:
        raise CertificateError(f"{path}: sizes are ascending whole numbers up to 1000, and shares lie between 0 and 1.")
    runs = [Run(**{**run, "certified": tuple(run["certified"])}) for run in own["runs"]]
    given = {"sizes": tuple(own["sizes"]), "claimed": tuple(own["claimed"]), "runs": tuple(runs)}
    return Card(**{**own, **given})


def _require_fields(path: Path, what: str, given: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    if set(given) != set(kinds):
        odd = sorted(set(given) ^ set(kinds))
        raise CertificateError(f"{path}: {what} has fields too many or too few: {', '.join(odd)[:200]}.")
    for name, kind in kinds.items():
        if not isinstance(given[name], kind) or (kind is int and isinstance(given[name], bool)):
            raise CertificateError(f'{path}: "{name}" of {what} is a {type(given[name]).__name__}.')


@dataclass(frozen=True)
class CardVerdict:
    """What became of a card.

    Attributes:
        file: The card.
        wrong: What is wrong; empty if nothing is.
        missing: Evidence that is not there, so that a number could not be derived again.
        derived: Numbers that were derived again and are as claimed.
    """

    file: Path
    wrong: tuple[str, ...]
    missing: tuple[str, ...]
    derived: int

    @property
    def status(self) -> str:
        """``"wrong"``, ``"not derived again"`` if evidence is missing, or ``"derived again"``."""
        return "wrong" if self.wrong else "not derived again" if self.missing else "derived again"


def card_files(folder: str | Path) -> list[Path]:
    """The cards of a folder.

    Raises:
        SettingsError: There are none.
    """
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        raise SettingsError(f"there are no cards in {folder}: expected files that end in .json.")
    return files


def check_folder(folder: str | Path, root: str | Path | None = None) -> Iterator[CardVerdict]:
    """Checks all cards of a folder; evidence that several of them share is read once.

    Args:
        folder: Folder of the cards.
        root: Folder of the datasets; if given, targets and true classes are compared with the dataset too.
    """
    known: dict[tuple[str, str], Any] = {}
    seen: dict[str, Path] = {}
    for file in card_files(folder):
        verdict = check_card(file, root, known)
        if verdict.status != "wrong":
            first = seen.setdefault(read_card(file).stem, file)
            if first != file:
                verdict = CardVerdict(file, (f"it is about the same result as {first.name}",), (), 0)
        yield verdict


def check_card(
    file: str | Path, root: str | Path | None = None, known: dict[tuple[str, str], Any] | None = None
) -> CardVerdict:
    """Derives every number of a card again from its evidence.

    Args:
        file: The card.
        root: Folder of the datasets; if given, targets and true classes are compared with the dataset too.
        known: Evidence that was read before, which this call adds to.
    """
    path, known = Path(file), {} if known is None else known
    try:
        card = read_card(path)
        for size in card.sizes:
            budgets_of(card.threat, size)
    except (AgnncertError, OSError) as error:
        return CardVerdict(path, (str(error),), (), 0)
    wrong, missing, derived = [], [], 0
    for run in card.runs:
        try:
            found = _evidence(path, run, known)
            if found is None:
                missing.append(f"seed {run.seed}: {_words_for_missing(run)}")
                continue
            reasons = [*_differences(card, run, found)]
            if root is not None and not reasons:
                reasons += _against_dataset(card, run, found, root, known)
        except (AgnncertError, OSError, KeyError, TypeError, ValueError) as error:
            reasons = [str(error)]
        wrong += [f"seed {run.seed}: {reason}" for reason in reasons]
        derived += 0 if reasons else len(card.sizes)
    if card.runs and [run.seed for run in card.runs] != sorted({run.seed for run in card.runs}):
        wrong.append("seeds must ascend, each once")
    for size, claimed, mean in zip(card.sizes, card.claimed, mean_of(card.runs), strict=True):
        if abs(claimed - mean) > 1.5 * 10**-DIGITS:
            wrong.append(f"at size {size} {claimed} is claimed, but the mean of its seeds is {mean:.5f}")
    return CardVerdict(path, tuple(wrong), tuple(missing), derived)


def _words_for_missing(run: Run) -> str:
    if run.sha256 is None:
        return f"the {run.evidence} was not kept, so nobody can derive these numbers again"
    return f"the {run.evidence} {run.sha256[:16]}… is not in this folder"


def mean_of(runs: Sequence[Run]) -> list[float]:
    """Mean over the seeds, at each size."""
    return [round(float(one), DIGITS) for one in np.mean([run.certified for run in runs], axis=0)]


@dataclass(frozen=True)
class Evidence:
    """What a file proves: which targets have the true class, and which of them hold against each budget.

    Attributes:
        target: Ids of the targets.
        truth: Their true classes.
        label: Their labels.
        guarantee: As the certificate says; ``"none"`` for labels alone.
        contents: What the certificate says, or ``None`` for labels alone.
    """

    target: Any
    truth: Any
    label: Any
    guarantee: str
    contents: Contents | None = None

    def holds(self, budget: Budget) -> Any:
        """Which targets hold against a budget, shape ``[n]``.

        Labels alone prove something only if they are a constant, or if there is no attack.

        Raises:
            CertificateError: The certificate states nothing about this budget.
        """
        if self.contents is None:
            same = len(np.unique(self.label)) == 1
            harmless = not any(
                getattr(budget, name) for name in ("add_edges", "delete_edges", "inject_nodes", "change_features")
            )
            return np.full(len(self.label), same or harmless)
        if budget not in self.contents.budgets:
            raise CertificateError(f"the certificate states nothing about {budget}: save it with this budget.")
        return self.contents.arrays["holds"][self.contents.budgets.index(budget)]

    def share(self, threat: str, size: int) -> float:
        """Share of all targets that have the true class and hold."""
        held = np.all([self.holds(budget) for budget in budgets_of(threat, size)], axis=0)
        return float((held & (self.label == self.truth)).mean())


def _evidence(card: Path, run: Run, known: dict[tuple[str, str], Any]) -> Evidence | None:
    """The evidence of a run; ``None`` if its file is not here."""
    file = None if run.file is None else (card.parent / run.file)
    if file is None or run.sha256 is None or not file.is_file():
        return None
    if card.parent.resolve() not in file.resolve().parents:
        raise CertificateError(f"{run.file} is outside the folder of the card.")
    key = str(file.resolve()), run.sha256
    if key not in known:
        known[key] = read_evidence(file, run.sha256, run.evidence)
    found: Evidence = known[key]
    return found


def read_evidence(file: Path, sha256: str, kind: str) -> Evidence:
    """Reads a file with evidence, and derives all its statements again.

    Raises:
        CertificateError: It has another digest, or a statement in it does not follow.
    """
    content = unpacked(file)
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise CertificateError(f"{file.name} has the digest {digest[:16]}…, the card names {sha256[:16]}…")
    if kind == "labels":
        stored = json.loads(content)
        target, label, truth = (np.array(stored[name], dtype=np.int64) for name in ("target", "label", "truth"))
        if not len(target) == len(label) == len(truth) == len(np.unique(target)) or not len(target):
            raise CertificateError(f"{file.name} has not one label and one true class for each target.")
        return Evidence(target, truth, label, "none")
    if kind != "certificate":
        raise CertificateError(f'the evidence is of the kind "{kind}": expected "certificate" or "labels".')
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "certificate.cert"
        plain.write_bytes(content)
        contents, wrong = check_file(plain)
    if wrong:
        raise CertificateError(f"{file.name} is refused: {'; '.join(wrong)[:400]}.")
    known = contents.arrays.get("truth")
    if known is None or (known < 0).any():
        raise CertificateError(f"{file.name} has no true class for some targets.")
    return Evidence(contents.arrays["target"], known, contents.arrays["label"], contents.claim.guarantee, contents)


def unpacked(file: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in ``.xz``; at most ``LARGEST_FILE``."""
    if file.stat().st_size > LARGEST_FILE:
        raise CertificateError(f"{file.name} has more than {LARGEST_FILE:,} bytes.")
    content = file.read_bytes()
    if file.suffix != ".xz":
        return content
    try:
        unpacker = lzma.LZMADecompressor()
        content = unpacker.decompress(content, max_length=LARGEST_FILE)
    except lzma.LZMAError as error:
        raise CertificateError(f"{file.name} cannot be unpacked: {error}.") from error
    if not unpacker.eof:
        raise CertificateError(f"{file.name} is cut short, or has more than {LARGEST_FILE:,} bytes.")
    return content


def _differences(card: Card, run: Run, found: Evidence) -> Iterator[str]:
    """What a run claims that its evidence does not say."""
    if found.guarantee != card.guarantee:
        yield f'the guarantee is "{found.guarantee}", the card says "{card.guarantee}"'
    if len(found.target) != run.targets:
        yield f"there are {len(found.target)} targets, the card says {run.targets}"
    for size, claimed in zip(card.sizes, run.certified, strict=True):
        share = found.share(card.threat, size)
        if abs(share - claimed) > 0.5 * 10**-DIGITS + 1e-12:
            yield f"at size {size} the evidence proves {share:.5f}, the card claims {claimed}"


def _against_dataset(card: Card, run: Run, found: Evidence, root: str | Path, known: dict[Any, Any]) -> list[str]:
    """What differs between the evidence and the test part of the dataset that the card names."""
    from agnncert.datasets.load import load_dataset
    from agnncert.datasets.splits import dataset_digest
    from agnncert.graphs.canonical import canonical
    from agnncert.graphs.digest import graph_digest

    key = card.dataset, f"{card.split} {run.seed}"
    if key not in known:
        data: Any = load_dataset(card.dataset, root=root, seed=run.seed, split=card.split or None)
        rows = data.test_mask.nonzero().view(-1)
        ids = data.node_id[rows].numpy()
        known[key] = dataset_digest(data), graph_digest(canonical(data)), ids, data.y[rows].numpy()
    digest, graph, ids, truth = known[key]
    reasons = [] if run.data in ("", digest) else ["the dataset with this split has another digest than the card says"]
    if found.contents is not None and found.contents.claim.digests.get("graph") != graph:
        reasons.append("the certificate is about another graph than the dataset")
    order, other = np.argsort(found.target), np.argsort(ids)
    same = np.array_equal(found.target[order], ids[other]) and np.array_equal(found.truth[order], truth[other])
    return reasons if same else [*reasons, "targets or true classes are not those of the test part"]


def pack(content: bytes, file: Path, largest: float = math.inf) -> str | None:
    """Writes evidence, packed, beside cards; returns the name of the file, or ``None`` if it is larger than allowed."""
    if len(content) > 50 * largest:  # certificates shrink by about ten
        return None
    packed = lzma.compress(content, preset=6)
    if len(packed) > largest:
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, packed)
    return file.name
