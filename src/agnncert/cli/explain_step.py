"""The step that explains: ``explain_target`` says which votes decided a label of a certified run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from agnncert.certificates.file import read_contents
from agnncert.certifier import explain
from agnncert.cli.folder import find_run
from agnncert.cli.settings import CertifySettings
from agnncert.cli.studies import certified_model, study_of_run
from agnncert.errors import IdError, SettingsError
from agnncert.explanation import VoteExplanation
from agnncert.models.digest import model_digest
from agnncert.pairs.record import BETWEEN
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.recompute import defence_of_file


def explain_target(
    source: str | Path, target: str, root: str | None = None, model: str | None = None
) -> VoteExplanation:
    """Explains the label of one target of a run.

    Args:
        source: The folder of the run.
        target: Id of the node, number of the graph, or both ids of a pair with a comma between them, as text.
        root: Where datasets are.
        model: The model, if it is code of the user.

    Raises:
        SettingsError: The folder is no certified run, or its model is not the certified one.
        IdError: The certificate has no such target.
    """
    folder = find_run(source)
    if folder is None or not folder.certificate.is_file():
        raise SettingsError(f"{source} is not the folder of a certified run: agnncert certify makes one.")
    _, study = study_of_run(folder, CertifySettings(root=root, model=model))
    certificate = load_certificate(folder.certificate)
    certified = certified_model(folder, study.new_model())
    if model_digest(certified) != certificate.claim.digests.get("model"):
        raise SettingsError(f"the model in {folder} is not the certified one: certify it again first.")
    defence = defence_of_file(read_contents(folder.certificate), certified)
    explanation = explain(certified, study.ready.data, defence, _id_of(certificate, target))
    return replace(explanation, words=folder.words)


def _id_of(certificate: Certificate, text: str) -> Any:
    """Returns the id that a text stands for: a text or a whole number, whichever the certificate has.

    Raises:
        IdError: It has neither.
    """
    if text in certificate:
        return text
    if certificate.claim.task == "pair":
        return _pair_of(certificate, text)
    if text.removeprefix("-").isdecimal() and int(text) in certificate:
        return int(text)
    return certificate[text].target  # raises, and says which ids are similar


def _pair_of(certificate: Certificate, text: str) -> str:
    """Returns the name of a pair that is given as two ids with a comma between them.

    Raises:
        IdError: It is no pair, or the certificate does not have it.
    """
    first, comma, second = (part.strip() for part in text.partition(","))
    if not comma:
        raise IdError(
            f'"{text:.60}" is no pair: give the ids of both nodes with a comma between them, as in "ann,bob".'
        )
    name = f"{first}{BETWEEN}{second}"
    if name in certificate:
        return name
    back = f"{second}{BETWEEN}{first}"
    if back in certificate:
        raise IdError(f'the certificate has no pair {first},{second}, but the other direction: "{second},{first}".')
    raise IdError(
        f"the certificate has no pair {first},{second}: it has {len(certificate):,}. By default only those of the "
        "test part are certified: agnncert certify RUN --set targets=all certifies all pairs of the table."
    )
