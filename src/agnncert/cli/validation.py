"""What a validator of models asks for, from one run folder: soundness, outcomes, monitoring, independent challenge.

Nothing is stated that the folder does not hold. What is not there is said, with what would bring it.
"""

from collections.abc import Iterable, Sequence

from agnncert.certificates.theorem_facts import division_words
from agnncert.cli.folder import RunFolder
from agnncert.cli.report_step import UNDER_ATTACK, Reported
from agnncert.errors import SettingsError
from agnncert.proving.certificate import Certificate
from agnncert.report.tables import laid_out
from agnncert.verdict import Verdict

BACKTEST = "backtest.json"  # what ``agnncert backtest --out`` has written into the run folder

_TEXT = """\
# Validation: {title}

What this run folder holds under the four headings by which models are validated (SR 26-2 of the Federal Reserve, OCC
Bulletin 2026-13). Data collection, governance and the use of the model are not in a run folder.

## Soundness

{soundness}

## Outcomes

{outcomes}

## Monitoring

{monitoring}

## Independent challenge

{challenge}
"""


def validation_text(folder: RunFolder, certificate: Certificate, said: Reported, verdict: Verdict) -> str:
    """Returns the four headings, filled from a run folder, as Markdown.

    Args:
        folder: The run.
        certificate: Its certificate.
        said: What the report says of it.
        verdict: What came of verifying it.
    """
    return _TEXT.format(
        title=_line(str(folder.data.get("name", "data"))),
        soundness=_soundness(folder, certificate),
        outcomes=_outcomes(certificate, said),
        monitoring=_monitoring(folder, certificate),
        challenge=_challenge(folder, said, verdict),
    )


def _soundness(folder: RunFolder, certificate: Certificate) -> str:
    claim = certificate.claim
    method = division_words(claim.division) or claim.method
    known = {
        "construction": "by construction: each layer is known",
        "test": "by test: no test can show it of every graph",
    }
    parts = [
        f"Model and defence: {_line(str(_made(folder).get('model')))}, {method}; the guarantee is {claim.guarantee}.",
        f"One step of the radius: {claim.unit}.",
        f"That the model looks along edges only is known {known[claim.locality]}." if claim.locality in known else "",
        "Assumed:",
        _list(claim.assumes),
        "Covered:",
        _list(claim.covers),
        "Not proved:",
        _list(claim.not_proved),
    ]
    if folder.weights.is_file():
        parts.append("How it was trained and on which data: `MODEL_CARD.md`.")
    return _paragraphs(parts)


def _made(folder: RunFolder) -> dict[str, object]:
    steps = folder.settings
    return {**steps.get("certify", {}), **steps.get("train", {})}


def _outcomes(certificate: Certificate, said: Reported) -> str:
    tables = [table for table in (said.table, *said.further, said.table_of_controls) if table]
    parts = [*said.sentences[:1], *map(_code, tables)]
    if not said.table:
        parts.append(_absent("measures by class", "certify targets whose true classes the data says"))
    if not said.table_of_controls:
        parts.append(_absent("other models at the same operating point", "train without `--no-references`"))
    if certificate.truth is not None and certificate.degree is not None and certificate.claim.task == "node":
        try:
            parts += ["By number of neighbours:", _code(str(certificate.by_group("degree", 1)))]
        except SettingsError as error:
            parts.append(f"Not by number of neighbours: {error}")
    return _paragraphs(parts)


def _monitoring(folder: RunFolder, certificate: Certificate) -> str:
    issued = certificate.issued
    until = issued.get("until")
    threshold = certificate.claim.threshold
    parts = [
        f"Issued on {issued['on']}." if "on" in issued else "",
        f"Valid until {until}." if until else _absent("a last day of use", "`agnncert issue --until`"),
        threshold.in_words(certificate.class_word(threshold.positive))
        if threshold is not None
        else _absent("a rate that the threshold was chosen for", "`agnncert certify --false-positive-rate`"),
        _backtest(folder),
        "Rates in service, and alarms about them, are kept by `agnncert serve` (`/rates`) and are not in this folder.",
    ]
    return _paragraphs(parts)


def _backtest(folder: RunFolder) -> str:
    """Returns what a backtest found, if one was written into the folder."""
    found = folder.read_json(BACKTEST)
    if not found:
        return _absent("a backtest", f"`agnncert backtest … --out {folder.path.name}/{BACKTEST}`")
    try:
        titles = ["from", "to", "model", "alerts", "false positives", "recall", "certified recall"]
        rows = [
            [each["until"], each["to"], each["model"], f"{each['alerts']:,}"]
            + [f"{each[name]:.3f}" for name in ("false_positive_rate", "recall", "certified_recall")]
            for each in found["periods"]
        ]
        alarms = [f"{each['rate']} in the period until {each['to']}" for each in found["alarms"]]
    except (KeyError, TypeError, ValueError):
        raise SettingsError(
            f"{folder.path / BACKTEST} is no backtest: write it with agnncert backtest --out."
        ) from None
    table = laid_out("text", titles, rows, "lllrrrr")
    return _paragraphs(["Backtest:", _code(table), f"Alarms: {'; '.join(map(_line, alarms)) or 'none'}."])


def _challenge(folder: RunFolder, said: Reported, verdict: Verdict) -> str:
    rows = [row for row in folder.rows("attack") if row["measure"].startswith(UNDER_ATTACK)]
    attacked = [f"{_line(row['measure'])}, size {row['size']:g}: {row['value']:.1%}" for row in rows]
    parts = [
        "Verified by `agnncert verify`, which derives every number again:",
        _list(verdict.checked),
        "Not verified:" if verdict.not_checked else "",
        _list(verdict.not_checked),
        _list(f"Warning: {warning}" for warning in verdict.warnings),
        "Attacked with knowledge of model and defence:" if attacked else _absent("an attack", "`agnncert attack`"),
        _list(attacked),
        said.sentences[2],
    ]
    return _paragraphs(parts)


def _absent(what: str, remedy: str) -> str:
    return f"Not in this folder: {what} ({remedy})."


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {_line(sentence)}" for sentence in sentences)


def _code(table: str) -> str:
    return "\n".join(f"    {line}" for line in table.splitlines())


def _line(text: str) -> str:
    """Returns text on one line that Markdown takes for text."""
    return " ".join(text.replace("`", "'").replace("<", "&lt;").split())


def _paragraphs(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part)
