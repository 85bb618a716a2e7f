"""Writes the certificates of the cards anew with the words of this version: ``python -m experiments.benchmarks.cards_anew``.

Only when the words of a claim change before a release. Evidence and statements stay as they are, and the verifier
derives every statement again from the new file.
"""

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path

from agnncert.append.claim import make_append_claim
from agnncert.append.record import AppendRecord
from agnncert.certificates.claim import Claim, expected_claim
from agnncert.certificates.file import Contents, read_contents, write_contents
from agnncert.certificates.votes import VoteRecord
from agnncert.errors import CertificateError
from agnncert.graph_votes.claim import make_graph_claim
from agnncert.graph_votes.record import GraphRecord
from agnncert.isolated.claim import make_isolated_claim
from agnncert.isolated.record import IsolatedRecord
from agnncert.labels.claim import make_label_claim
from agnncert.labels.joint_claim import make_joint_claim
from agnncert.labels.joint_record import JointRecord
from agnncert.labels.record import LabelRecord
from agnncert.pairs.claim import make_pair_claim
from agnncert.pairs.record import PairRecord
from agnncert.stacked.claim import make_stacked_claim
from agnncert.stacked.record import StackedRecord
from agnncert.verdict import check_file
from agnncert_peers.card_evidence import pack, unpacked
from agnncert_peers.card_making import FILES
from agnncert_peers.cards import read_card
from agnncert_peers.sample_claim import make_sample_claim

CARDS = Path(__file__).resolve().parents[1] / "cards"


def main(folder: Path = CARDS) -> None:
    """Writes every certificate and every card that names one, and removes the old certificates."""
    cards = [read_card(file) for file in sorted(folder.glob("*.json"))]
    old_names = {run.file for card in cards for run in card.runs if run.file and run.evidence == "certificate"}
    digest_of = {name: rewrite(folder / name) for name in sorted(old_names)}
    for card in cards:
        runs = []
        for run in card.runs:
            if run.file in digest_of:
                sha256 = digest_of[run.file]
                run = replace(run, sha256=sha256, file=_name(sha256))
            runs.append(run)
        replace(card, runs=tuple(runs)).save(folder)
    new_names = {_name(sha256) for sha256 in digest_of.values()}
    for name in old_names - new_names:
        (folder / name).unlink()
    print(f"{len(new_names)} certificates, {len(old_names - new_names)} of them have other words than before")


def rewrite(file: Path) -> str:
    """Writes one certificate with the claim that its evidence allows now, beside the old one, and returns its digest.

    Raises:
        CertificateError: The verifier refuses the new file.
    """
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "certificate.cert"
        plain.write_bytes(unpacked(file))
        contents = read_contents(plain)
        write_contents(plain, replace(contents, claim=claim_of(contents)))
        wrong = check_file(plain)[1]
        if wrong:
            raise CertificateError(f"{file.name} is refused: {'; '.join(wrong)[:400]}.")
        content = plain.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    pack(content, file.parent.parent / _name(sha256))
    return sha256


def claim_of(contents: Contents) -> Claim:
    """Returns the claim that the evidence of a file allows, about the same model and with the same remarks.

    Raises:
        CertificateError: It is of a kind whose words are not made here.
    """
    claim, settings = contents.claim, contents.settings
    evidence = contents.evidence
    match contents.kind:
        case "votes":
            expected = expected_claim(claim, VoteRecord.load(evidence, settings))
        case "stacked":
            stacked = StackedRecord.load(evidence, settings)
            expected = make_stacked_claim(
                stacked, digests=claim.digests, locality=claim.locality, rounding=claim.rounding
            )
        case "labels":
            expected = make_label_claim(LabelRecord.load(evidence, settings), digests=claim.digests)
        case "labels-and-edges":
            expected = make_joint_claim(JointRecord.load(evidence, settings), digests=claim.digests)
        case "pairs":
            pairs = PairRecord.load(evidence, settings)
            expected = make_pair_claim(pairs, digests=claim.digests, locality=claim.locality)
        case "isolated":
            words = {name: getattr(claim, name) for name in ("tolerance", "digests", "locality", "rounding")}
            expected = make_isolated_claim(IsolatedRecord.load(evidence, settings), claim.division, **words)
        case "graph-votes":
            expected = make_graph_claim(GraphRecord.load(evidence, settings), digests=claim.digests)
        case "append":
            expected = make_append_claim(AppendRecord.load(evidence, settings), digests=claim.digests)
        case "samples":
            names = ("method", "noise", "task", "alpha", "scope")
            expected = make_sample_claim(
                **{name: settings[name] for name in names}, ids=claim.ids, digests=claim.digests
            )
        case other:
            raise CertificateError(f'a certificate of kind "{other}" has no words here: add a case for it.')
    return replace(expected, notes=claim.notes, library_version=claim.library_version)


def _name(sha256: str) -> str:
    return f"{FILES}/{sha256[:24]}.cert.xz"


if __name__ == "__main__":
    main()
