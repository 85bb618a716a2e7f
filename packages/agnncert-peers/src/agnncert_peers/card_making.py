"""Cards from certificates: of a run, of a comparison, or of one file."""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agnncert.certificates.budget import Budget
from agnncert.errors import SettingsError
from agnncert.proving.certificate import load_certificate
from agnncert_peers.cards import (
    DIGITS,
    FORMAT,
    THREATS,
    Card,
    Evidence,
    Run,
    budgets_of,
    mean_of,
    pack,
    read_card,
    read_evidence,
)  # fmt: skip

SIZES = (0, 1, 2, 3, 5, 10)
FILES = "certificates"  # folder of the evidence, beside the cards
LARGEST = 300_000  # bytes of packed evidence that are kept beside cards


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


def restated(file: Path, threats: Sequence[str], sizes: Sequence[int]) -> bytes:
    """The certificate with statements about all budgets of some threats, as the bytes of its file."""
    certificate = load_certificate(file)
    budgets: dict[Budget, None] = {
        budget: None for threat in threats for size in sizes for budget in budgets_of(threat, size)
    }
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / "restated.cert"
        certificate.save(new, budgets=tuple(budgets))
        return new.read_bytes()


def make_cards(
    content: bytes,
    about: About,
    folder: str | Path,
    threats: Sequence[str] = tuple(THREATS),
    sizes: Sequence[int] = SIZES,
    kind: str = "certificate",
    largest: float = LARGEST,
) -> list[Path]:
    """Writes the evidence and a card for each threat against which it proves something; returns the cards.

    If there is a card for the same result with other seeds, the seed is added to it.

    Args:
        content: The evidence, as the bytes of its file.
        about: What it is about.
        folder: Folder of the cards.
        threats: Threats to write cards for.
        sizes: Sizes of the attack.
        kind: ``"certificate"`` or ``"labels"``.
        largest: Packed evidence of more bytes is not kept beside the cards: they name its digest only.
    """
    folder, sha256 = Path(folder), hashlib.sha256(content).hexdigest()
    file = folder / FILES / f"{sha256[:24]}.{'cert' if kind == 'certificate' else 'json'}.xz"
    kept = pack(content, file, largest)
    found = _read(content, sha256, kind)
    settings = about.settings or (
        "" if found.contents is None else found.contents.claim.division or found.contents.claim.method
    )
    written = []
    for threat in threats:
        shares = [round(found.share(threat, size), DIGITS) for size in sizes]
        if not any(shares[1:]) and not about.control and any(sizes[1:]):
            continue  # nothing is proved against this threat
        run = Run(
            about.seed, about.data, len(found.target), tuple(shares), kind, sha256,
            None if kept is None else f"{FILES}/{kept}", about.seconds or {},
        )  # fmt: skip
        card = Card(
            about.defence, settings, found.guarantee, about.control, threat, about.dataset, about.split, about.protocol,
            tuple(sizes), tuple(shares), (run,), about.citation,
        )  # fmt: skip
        written.append(_merged(card, folder).save(folder))
    return written


def _read(content: bytes, sha256: str, kind: str) -> Evidence:
    with tempfile.TemporaryDirectory() as place:
        plain = Path(place) / "evidence"
        plain.write_bytes(content)
        return read_evidence(plain, sha256, kind)


def _merged(card: Card, folder: Path) -> Card:
    """The card with the runs of other seeds that are there already."""
    file = folder / f"{card.stem}.json"
    earlier = read_card(file).runs if file.exists() else ()
    if earlier and read_card(file).sizes != card.sizes:
        raise SettingsError(f"{file} has other sizes: {read_card(file).sizes}. Use the same, or another folder.")
    runs = sorted([*(run for run in earlier if run.seed != card.runs[0].seed), *card.runs], key=lambda run: run.seed)
    return replace(card, runs=tuple(runs), claimed=tuple(mean_of(runs)))


def cards_of(
    place: Path,
    out: Path,
    defence: str = "",
    protocol: str = "",
    split: str = "",
    citation: str = "",
    data: str = "",
    seed: int | None = None,
    sizes: Sequence[int] = SIZES,
) -> list[Path]:
    """Writes the cards of a run, of a comparison, or of one certificate.

    Args:
        place: Folder of a run or of a comparison, or the file of a certificate.
        out: Folder of the cards.
        defence: Name of the defence; of a comparison all have their own.
        protocol: How the data is split and what training sees.
        split: The split as ``load_dataset`` names it.
        citation: Whom to cite.
        data: Name of the dataset, where the place does not say it.
        seed: Seed, where the place does not say it.
        sizes: Sizes of the attack.

    Raises:
        SettingsError: There is no certificate, or something is not known about it.
    """
    from agnncert.cli.folder import find_run

    usual = "30 %" if not split else f"{split.partition('-')[0]} per class"
    common: dict[str, Any] = {"protocol": protocol or usual, "split": split, "citation": citation}
    run = find_run(place) if place.is_dir() else None
    if run is not None and run.certificate.is_file():
        rows = run.rows("certify")
        known = rows[-1] if rows else {}
        name = data or str(run.data.get("name", ""))
        number = seed if seed is not None else int(known.get("seed") or 0)
        about = About(
            defence or _plain(str(known.get("division", ""))), name, number, str(run.data["digest"]), **common
        )
        return make_cards(restated(run.certificate, tuple(THREATS), sizes), about, out, sizes=sizes)
    files = [place] if place.is_file() else sorted([*place.glob("*.cert"), *(place / FILES).glob("*.cert")])
    if not files:
        raise SettingsError(
            f"{place} is neither a run, nor a comparison, nor a certificate: there is no .cert file in it."
        )
    if not data or seed is None:
        raise SettingsError(f"{place} does not say which dataset and seed it is about: pass --data and --seed.")
    written = []
    for file in files:
        certificate = load_certificate(file)
        told = file.with_suffix(".json")
        stored = json.loads(told.read_text(encoding="utf-8")) if told.is_file() else {}
        stored = {} if stored.get("format") == FORMAT else stored
        seconds = {name: stored[f"seconds_{key}"] for name, key in _SECONDS.items() if f"seconds_{key}" in stored}
        name = defence if defence and len(files) == 1 else _plain(stored.get("defence") or certificate.claim.method)
        about = About(name, data, seed, "", seconds=seconds, **common)
        written += make_cards(restated(file, tuple(THREATS), sizes), about, out, sizes=sizes)
    return written


_SECONDS = {"training": "training", "certifying": "certification"}


def _plain(division: str) -> str:
    return division.replace(", hash=md5", "").replace(", key=u64le", "") or "defence"


def labels_of(target: Sequence[int], label: Sequence[int], truth: Sequence[int]) -> bytes:
    """Labels without a proof, as evidence of a control."""
    stored: dict[str, Any] = {"target": list(target), "label": list(label), "truth": list(truth)}
    return (json.dumps(stored) + "\n").encode()
