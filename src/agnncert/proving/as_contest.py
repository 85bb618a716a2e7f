"""Writes a certificate as a contest, an open format that says in plain numbers what votes and changes are."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agnncert.certificates.budget import Budget
from agnncert.contest.checker import wrong_form
from agnncert.contest.file import from_json, to_json, write_contest
from agnncert.contest.form import Claim
from agnncert.contest.kinds import kind_of_file
from agnncert.contest.kinds.statements import form_of, statements_of, stay_until
from agnncert.errors import CertificateError

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate

REFERENCE = "docs/proofs.md and docs/contest.md of agnncert {version}"


def write_as_contest(
    certificate: "Certificate", path: str | Path, budgets: Iterable[Budget], rows: Sequence[int]
) -> None:
    """Writes a contest with the radius of some targets, and which of them keep their label under each budget.

    Of targets that may lose their label, the file states which classes they cannot get. It also states how many targets
    one attack may break, among those in the file.

    Args:
        certificate: The certificate.
        path: Where to write.
        budgets: The budgets.
        rows: Positions of the targets in the certificate.

    Raises:
        CertificateError: The certificate holds random samples, or the file would be too large to be checked.
    """
    evidence = certificate.evidence
    kind = kind_of_file(evidence.kind, evidence.tensors(), evidence.settings())
    targets = [replace(kind.target(row), name=_name_of(certificate, row)) for row in rows]
    voters = tuple(kind.voters(rows))
    classes = [certificate.class_word(k) for k in range(certificate.num_classes)]
    contest = form_of(kind, [*targets, *(voter for voter, _ in voters)], classes, _claim_of(certificate))
    radii = [int(certificate.radius[row]) for row in rows]
    stated = [*statements_of(contest, kind, budgets, radii)]
    stated += stay_until(contest, len(rows), [attack for _, attack in voters])
    contest = replace(contest, statements=tuple(stated))
    try:
        wrong = wrong_form(from_json(to_json(contest)))
    except ValueError as error:
        wrong = [str(error)]
    if wrong:
        raise CertificateError(f"this certificate does not fit into one contest: {wrong[0]}. Choose fewer targets.")
    write_contest(path, contest)


def _name_of(certificate: "Certificate", row: int) -> str:
    """Returns the id of a target, in quotes if it is blank: a contest has no blank names."""
    name = str(certificate.target[row])
    return name if name.strip() else repr(name)


def _claim_of(certificate: "Certificate") -> Claim:
    """Returns what the author says about the contest: the claim of the certificate, and what it rests on."""
    claim = certificate.claim
    defence = f"{claim.method} {claim.division}".strip()
    digests = [f"the {name} has the SHA-256 {digest}" for name, digest in sorted(claim.digests.items())]
    covered = [f"the changes are these: {text}" for text in claim.covers]
    return Claim(
        defence=f"{defence}, {claim.task}s",
        author=certificate.issued.get("by", "agnncert"),
        reference=REFERENCE.format(version=claim.library_version),
        assumes=(*digests, *claim.assumes, *covered),
    )
