"""What is handed over with a certificate: who issued it, a statement to sign, a redacted form, JUnit for pipelines.

Nothing here signs anything: keys stay with the tools of the user. ``docs/guides/hand-over.md`` shows one.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from agnncert.certificates.file import read_contents, write_contents
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.model_card import Proved, card_text
from agnncert.cli.report_step import report_certificate
from agnncert.cli.settings import DefenceSettings
from agnncert.cli.validation import validation_text
from agnncert.errors import CertificateError
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.report.summary import Shares, changes_only, summarise
from agnncert.storage import visible, write_atomic
from agnncert.verdict import Verdict, verify

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
REDACTED = "agnncert-redacted-1"
_REDACTED_NOTE = (
    "Targets, their ids, votes and edges are left out, so nothing here can be derived again. It belongs to the "
    "certificate file with the SHA-256 below; whoever holds that file can verify it."
)


def issue_files(
    file: Path, issued: Mapping[str, str], out: Path | None, whole: bool, on_progress: OnProgress | None = None
) -> dict[str, Path]:
    """Writes a certificate with what is stated about its hand-over, its statement and its redacted form.

    Args:
        file: The certificate.
        issued: Who issues it (``by``), ``on``, ``system`` and ``until``, as far as stated; ``on`` defaults to today.
        out: Folder for the files. Defaults to ``issued`` beside the certificate.
        whole: Whether to verify data and model as well, which the run folder of the certificate holds.
        on_progress: Called while predictions are computed.

    Returns:
        The files by what they are.

    Raises:
        CertificateError: The certificate does not hold, or what is stated makes no sense.
    """
    today = datetime.now(UTC).date().isoformat()
    contents = replace(read_contents(file), issued={"on": today, **issued})
    out = out or file.parent / "issued"
    out.mkdir(parents=True, exist_ok=True)
    copy = out / file.name
    if copy.exists() and copy.samefile(file):
        raise CertificateError(f"{copy} is the certificate itself: choose another folder with --out.")
    draft = out / f".{file.name}.part"  # nothing is left behind if it does not hold
    try:
        write_contents(draft, contents)
        verdict = _verdict(draft, file, whole, on_progress)
        if not verdict:
            raise CertificateError(f"{file} is not issued. {verdict}")
        draft.replace(copy)
    finally:
        draft.unlink(missing_ok=True)
    certificate = load_certificate(copy)
    files = {"certificate": copy, "statement": copy.with_suffix(".statement.json")}
    files["redacted_form"] = copy.with_suffix(".redacted.json")
    beside = _models_beside(file) if whole else []
    write_atomic(files["redacted_form"], _json(redacted(certificate, copy)))
    # The redacted form goes to people without the certificate: only what is signed tells them that it is the issuer's.
    subjects = [copy, files["redacted_form"], *beside]
    write_atomic(files["statement"], _json(statement(certificate, verdict, subjects)))
    if whole and (folder := find_run(file)) is not None:
        files |= _cards(folder, certificate, copy, verdict)
    return files


def _cards(folder: RunFolder, certificate: Certificate, copy: Path, verdict: Verdict) -> dict[str, Path]:
    """Writes what is for readers, of a run: the model card, and what a validator asks for."""
    said = report_certificate(certificate, copy, folder, write=False)
    proved = Proved(said.sentences[:2], said.table, certificate.claim.not_proved, certificate.issued)
    files = {"model_card": copy.with_name("MODEL_CARD.md"), "validation": copy.with_name("VALIDATION.md")}
    write_atomic(files["model_card"], card_text(folder, proved))
    write_atomic(files["validation"], validation_text(folder, certificate, said, verdict))
    return files


def result_in_words(statement: Path) -> str:
    """Returns the result that a statement to sign has, with the reasons if it is not that everything was verified."""
    predicate = json.loads(statement.read_text(encoding="utf-8"))["predicate"]
    if predicate["result"] == "PASSED":
        return "PASSED, data and model were verified"
    warnings = [text for text in predicate["warnedTests"] if not text.startswith("not checked: ")]
    reason = "; ".join(warnings) or "data or model were not verified: name the folder of the run instead of its file"
    return f"{predicate['result']}, {reason}"


def _models_beside(file: Path) -> list[Path]:
    """Returns the files with the trained model of a run and with its certified one, as far as there are such files."""
    run = RunFolder(file.parent)
    return [path for path in (run.weights, run.certified_weights) if path.is_file()]


def _verdict(copy: Path, file: Path, whole: bool, on_progress: OnProgress | None) -> Verdict:
    if not whole:
        return verify(copy)
    from agnncert.cli.verify_step import verify_named  # brings torch

    return verify_named(copy, DefenceSettings(data=str(file.parent)), 0, on_progress)


def statement(certificate: Certificate, verdict: Verdict, subjects: Sequence[Path]) -> dict[str, Any]:
    """An in-toto statement: what was verified about these files, as a test result.

    ``WARNED`` says that data or model were not compared, or that the file is used outside of its dates.
    """
    claim, complete = certificate.claim, len(verdict.compared) == 2 and not verdict.warnings
    headline = report_certificate(certificate, subjects[0], None, write=False).sentences[:2]
    content = base64.b64encode(json.dumps(claim.to_json(), sort_keys=True).encode()).decode()
    about: dict[str, Any] = {"issued": dict(certificate.issued), "proved": list(headline)}
    if certificate.class_names:
        about["class_names"] = list(certificate.class_names)
    described = [
        {"name": f"{name}, as digested by agnncert", "digest": {"sha256": digest}}
        for name, digest in claim.digests.items()
    ]
    return {
        "_type": STATEMENT,
        "subject": [{"name": path.name, "digest": {"sha256": _sha256(path)}} for path in subjects],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": "FAILED" if not verdict else "PASSED" if complete else "WARNED",
            "configuration": [
                {"name": "claim", "mediaType": "application/json", "content": content, "annotations": about},
                *described,
            ],
            "passedTests": list(verdict.checked),
            "warnedTests": [*verdict.warnings, *(f"not checked: {what}" for what in verdict.not_checked)],
            "failedTests": list(verdict.reasons),
        },
    }


def redacted(certificate: Certificate, file: Path) -> dict[str, Any]:
    """What a certificate says about all targets together: claim, curves and digests, but no target."""
    summary = summarise(certificate, None)
    curves = {"all": _points(summary.certified)}
    for k, curve in sorted(summary.recalls.items()):
        name = f" ({certificate.class_names[k]})" if certificate.class_names else ""
        curves[f"recall of class {k}{name}"] = _points(curve)
    return {
        "format": REDACTED,
        "note": _REDACTED_NOTE,
        "certificate_sha256": _sha256(file),
        "issued": dict(certificate.issued),
        "claim": certificate.claim.to_json(),
        "class_names": list(certificate.class_names),
        "targets": summary.num_targets,
        "targets_of_each_class": summary.support.tolist(),
        "certified": "accuracy" if summary.truth is not None else "share",
        "curves": curves,
    }


def _points(curve: Shares) -> list[list[float]]:
    """Sizes and shares where a curve changes; between them it is as at the next size."""
    steps = changes_only(curve)
    return [[float(size), float(share)] for size, share in zip(steps.size, steps.share, strict=True)]


def write_junit(path: Path, certificate: Path, verdict: Verdict, missing: Sequence[str] = ()) -> None:
    """Writes a verdict as JUnit XML: what was checked has passed, what was not is skipped, what is wrong has failed."""
    cases: list[tuple[str, str]] = [(what, "") for what in verdict.checked]
    cases += [(what, "skipped") for what in verdict.not_checked]
    cases += [(what, "failure") for what in (*verdict.reasons, *missing)]
    counts = {tag: str(sum(kind == tag for _, kind in cases)) for tag in ("failure", "skipped")}
    suite = ElementTree.Element(
        "testsuite", name="agnncert verify", tests=str(len(cases)), failures=counts["failure"],
        skipped=counts["skipped"], errors="0",
    )  # fmt: skip
    for name, outcome in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=visible(str(certificate)), name=visible(name))
        if outcome:
            ElementTree.SubElement(case, outcome, message="was not checked" if outcome == "skipped" else visible(name))
    if verdict.warnings:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(f"warning: {what}" for what in verdict.warnings)
    write_atomic(path, ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
