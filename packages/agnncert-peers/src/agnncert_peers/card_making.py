"""Cards from certificates: of a run, of a comparison, or of one file."""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agnncert.certificates.budget import Budget
from agnncert.errors import BudgetError, CertificateError, SettingsError
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.storage import parse_json
from agnncert_peers.card_evidence import Evidence, pack, read_evidence
from agnncert_peers.cards import (
    BEFORE_TRAINING,
    DIGITS,
    FORMAT,
    MEASURES,
    ON_REQUEST,
    THREATS,
    Card,
    Run,
    budgets_of,
    check_protocol,
    mean_of,
    read_card,
)  # fmt: skip

if TYPE_CHECKING:
    from agnncert.cli.folder import RunFolder

SIZES = (0, 1, 2, 3, 5, 10)
FILES = "certificates"  # folder of the evidence, beside the cards
LARGEST = 4_000_000  # bytes of packed evidence that are kept beside cards


@dataclass(frozen=True)
class About:
    """What a certificate does not say about its result.

    Attributes:
        defence: Name of the defence.
        dataset: Name of the dataset.
        seed: Seed of split, weights and samples.
        data: Digest of graph, labels and split.
        protocol: How the data is split and what training sees.
        split: The split as ``load_dataset`` names it; empty for the usual one.
        citation: Whom to cite.
        settings: Settings of the defence; those of the claim when empty.
        control: Whether it is a control.
        seconds: Seconds of training and of certifying.
        measure: What the shares are averaged over. Defaults to all targets.
    """

    defence: str
    dataset: str
    seed: int
    data: str
    protocol: str
    split: str = ""
    citation: str = ""
    settings: str = ""
    control: bool = False
    seconds: Mapping[str, float] | None = None
    measure: str = MEASURES[0]


def threats_of(certificate: Certificate) -> tuple[str, ...]:
    """Returns the threats that a certificate says something about, without those that have to be asked for."""
    return tuple(threat for threat in THREATS if threat not in ON_REQUEST and _answers(certificate, threat))


def _answers(certificate: Certificate, threat: str) -> bool:
    """Tells whether a certificate covers a threat: its budgets, and training if the threat is before it."""
    if threat in BEFORE_TRAINING and not getattr(certificate.evidence, "edge_blind", False):
        return False
    return not _refuses(certificate, threat) and all(map(certificate.evidence.covers, budgets_of(threat, 1)))


def _refuses(certificate: Certificate, threat: str) -> bool:
    """Tells whether a certificate refuses to say anything about a threat, because it trusts its training data."""
    try:
        for budget in budgets_of(threat, 1):
            certificate.evidence.require_budget(budget)
    except BudgetError:
        return True
    return False


def restated(file: Path, threats: Sequence[str], sizes: Sequence[int]) -> bytes:
    """Returns the certificate with statements about all budgets of some threats, as the bytes of its file.

    Threats that the certificate refuses to answer are left out.
    """
    certificate = load_certificate(file)
    budgets: dict[Budget, None] = {}  # each once, in the order of threats and sizes
    answered = [threat for threat in threats if not _refuses(certificate, threat)]
    for threat in answered:
        for size in sizes:
            budgets.update(dict.fromkeys(budgets_of(threat, size)))
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / "restated.cert"
        certificate.save(new, budgets=tuple(budgets))
        return new.read_bytes()


def make_cards(
    content: bytes,
    about: About,
    folder: str | Path,
    threats: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    *,
    kind: str = "certificate",
    largest: float = LARGEST,
) -> list[Path]:
    """Writes the evidence and a card for each threat against which it proves something; returns the cards.

    If there is a card for the same result with other seeds, the seed is added to it.

    Args:
        content: The evidence, as the bytes of its file.
        about: What it is about.
        folder: Folder of the cards.
        threats: Threats to write cards for. Defaults to all that the evidence says something about.
        sizes: Sizes of the attack.
        kind: ``"certificate"``, ``"labels"`` or ``"parts"``.
        largest: Packed evidence of more bytes is not kept beside the cards: they name its digest only.

    Raises:
        SettingsError: The split is not that of the protocol.
        CertificateError: The evidence does not hold, or is of a test that is unsound; or there are votes of parts, and
            it is no control or its settings do not state their number.
    """
    wrong_split = check_protocol(about.protocol, about.split)
    if wrong_split:
        raise SettingsError(wrong_split)
    folder = Path(folder)
    sha256 = hashlib.sha256(content).hexdigest()
    ending = "cert" if kind == "certificate" else "json"
    kept = pack(content, folder / FILES / f"{sha256[:24]}.{ending}.xz", largest)
    evidence = _read(content, sha256, kind)
    wrong_parts = evidence.wrong_parts(about.defence, about.settings, about.control)
    if wrong_parts:
        raise CertificateError(f"{wrong_parts[0]}.")
    if threats is None:
        threats = [threat for threat in THREATS if evidence.speaks_of(threat, sizes)]
    written = []
    for threat in threats:
        shares = tuple(round(evidence.share(threat, size, about.measure), DIGITS) for size in sizes)
        proves_nothing = any(sizes[1:]) and not any(shares[1:])
        if proves_nothing and not about.control:
            continue
        run = Run(
            seed=about.seed,
            data=about.data,
            targets=len(evidence.target),
            certified=shares,
            evidence=kind,
            sha256=sha256,
            file=None if kept is None else f"{FILES}/{kept}",
            seconds=about.seconds or {},
        )
        card = Card(
            defence=about.defence,
            settings=about.settings or _settings_of(evidence),
            guarantee=evidence.guarantee,
            control=about.control,
            threat=threat,
            dataset=about.dataset,
            split=about.split,
            protocol=about.protocol,
            sizes=tuple(sizes),
            claimed=shares,
            runs=(run,),
            citation=about.citation,
            measure=about.measure,
        )
        written.append(_merged(card, folder).save(folder))
    return written


def _settings_of(evidence: Evidence) -> str:
    """Returns the settings of a defence as its certificate names them."""
    return evidence.names[0] if evidence.names else ""


def _read(content: bytes, sha256: str, kind: str) -> Evidence:
    with tempfile.TemporaryDirectory() as place:
        plain = Path(place) / "evidence"
        plain.write_bytes(content)
        return read_evidence(plain, sha256, kind)


def _merged(card: Card, folder: Path) -> Card:
    """Returns the card with the runs of other seeds that are there already."""
    file = folder / f"{card.stem}.json"
    if not file.exists():
        return card
    earlier = read_card(file)
    if earlier.sizes != card.sizes:
        raise SettingsError(f"{file} has other sizes: {earlier.sizes}. Use the same, or another folder.")
    others = [run for run in earlier.runs if run.seed != card.runs[0].seed]
    runs = sorted([*others, *card.runs], key=lambda run: run.seed)
    return replace(card, runs=tuple(runs), claimed=tuple(mean_of(runs)))


@dataclass(frozen=True)
class Stated:
    """What a user says about results. Empty values are those of the run.

    Attributes:
        defence: Name of the defence; of a comparison all have their own.
        protocol: How the data is split and what training sees.
        split: The split as ``load_dataset`` names it.
        citation: Whom to cite.
        dataset: Name of the dataset, where the place does not say it.
        seed: Seed, where the place does not say it.
    """

    defence: str = ""
    protocol: str = ""
    split: str = ""
    citation: str = ""
    dataset: str = ""
    seed: int | None = None

    def about(self, defence: str, dataset: str, seed: int, task: str, data: str = "") -> About:
        """Returns what a result is about; ``data`` is the digest of graph, labels and split."""
        usual = "graphs" if task == "graph" else "30 %"
        if self.split:
            usual = f"{self.split.partition('-')[0]} per class"
        return About(
            defence=defence,
            dataset=dataset,
            seed=seed,
            data=data,
            protocol=self.protocol or usual,
            split=self.split,
            citation=self.citation,
        )


def cards_of(place: Path, out: Path, stated: Stated | None = None, sizes: Sequence[int] = SIZES) -> list[Path]:
    """Writes the cards of a run, of a comparison, or of one certificate.

    Args:
        place: Folder of a run or of a comparison, or the file of a certificate.
        out: Folder of the cards.
        stated: What the user says about them. Defaults to nothing.
        sizes: Sizes of the attack.

    Raises:
        SettingsError: There is no certificate, or something is not known about it.
    """
    from agnncert.cli.folder import find_run

    stated = stated or Stated()
    run = find_run(place) if place.is_dir() else None
    if run is not None and run.certificate.is_file():
        return _cards_of_run(run, out, stated, sizes)
    files = [place] if place.is_file() else sorted([*place.glob("*.cert"), *(place / FILES).glob("*.cert")])
    if not files:
        raise SettingsError(
            f"{place} is neither a run, nor a comparison, nor a certificate: there is no .cert file in it."
        )
    if not stated.dataset or stated.seed is None:
        raise SettingsError(f"{place} does not say which dataset and seed it is about: pass --data and --seed.")
    written = []
    for file in files:
        outcome = _stored_outcome(file)
        claim = load_certificate(file).claim
        name = _plain(outcome.get("defence") or claim.method)
        if stated.defence and len(files) == 1:
            name = stated.defence
        about = replace(stated.about(name, stated.dataset, stated.seed, claim.task), seconds=_seconds_of(outcome))
        written += _cards_of_certificate(file, about, out, sizes)
    return written


def _cards_of_run(run: "RunFolder", out: Path, stated: Stated, sizes: Sequence[int]) -> list[Path]:
    rows = run.rows("certify")
    last = rows[-1] if rows else {}
    seed = stated.seed if stated.seed is not None else int(last.get("seed") or 0)
    about = stated.about(
        defence=stated.defence or _plain(str(last.get("division", ""))),
        dataset=stated.dataset or str(run.data.get("name", "")),
        seed=seed,
        task=load_certificate(run.certificate).claim.task,
        data=str(run.data["digest"]),
    )
    return _cards_of_certificate(run.certificate, about, out, sizes)


def _cards_of_certificate(file: Path, about: About, out: Path, sizes: Sequence[int]) -> list[Path]:
    """Writes a card for each threat that a certificate says something about."""
    threats = threats_of(load_certificate(file))
    return make_cards(restated(file, threats, sizes), about, out, threats, sizes)


def _stored_outcome(certificate: Path) -> Mapping[str, Any]:
    """Returns what a comparison stored beside a certificate; empty if it stored nothing."""
    file = certificate.with_suffix(".json")
    if not file.is_file():
        return {}
    stored: Mapping[str, Any] = parse_json(file.read_text(encoding="utf-8"))
    return {} if stored.get("format") == FORMAT else stored


def _seconds_of(outcome: Mapping[str, Any]) -> dict[str, float]:
    return {name: outcome[key] for name, key in _SECONDS.items() if key in outcome}


_SECONDS = {"training": "seconds_training", "certifying": "seconds_certification"}


def _plain(division: str) -> str:
    return division.replace(", hash=md5", "").replace(", key=u64le", "") or "defence"


def labels_of(target: Sequence[int | str], label: Sequence[int], truth: Sequence[int]) -> bytes:
    """Returns labels without a proof, as evidence of a control."""
    stored: dict[str, Any] = {"target": list(target), "label": list(label), "truth": list(truth)}
    return (json.dumps(stored) + "\n").encode()


def parts_of(target: Sequence[int | str], votes: Sequence[Sequence[int]], truth: Sequence[int]) -> bytes:
    """Returns votes of which one changed training label or graph alters one, as evidence of a control.

    Args:
        target: Ids of the targets.
        votes: How many parts vote for each class, one list for each target.
        truth: True classes of the targets.
    """
    stored: dict[str, Any] = {"target": list(target), "votes": [list(row) for row in votes], "truth": list(truth)}
    return (json.dumps(stored) + "\n").encode()
