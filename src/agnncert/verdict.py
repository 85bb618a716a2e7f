"""``verify``: which parts of a certificate are true?

From the file alone, ``verifier`` derives every statement again, without torch and in code of its own. Given the graph
and the model, ``recompute`` casts votes again.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agnncert.certificates.class_names import names_in_data
from agnncert.certificates.file import Contents, read_contents
from agnncert.errors import CertificateError, SettingsError, suggests_arguments
from agnncert.findings import Findings
from agnncert.verifier.check import check_budgets, check_premise
from agnncert.verifier.exclusions import wrong_exclusions
from agnncert.verifier.file_checker import FileChecker
from agnncert.verifier.kinds import checked

if TYPE_CHECKING:
    from agnncert.defence import AsDefence, GraphData, Model
    from agnncert.engine.workers import Workers
    from agnncert.progress import OnProgress
    from agnncert.proving.certificate import Certificate

log = logging.getLogger(__name__)

MOST_LISTED = 10  # classes in one line


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check. It says no more than what was checked: see ``docs/what-a-verdict-means.md``.

    Attributes:
        holds: Whether nothing is wrong in what was checked. From a file alone that is its arithmetic, and no more.
        reasons: What is wrong; empty if nothing is.
        checked: What was checked.
        not_checked: What was not, and had to be taken as it stands; ``docs/trust.md`` explains each of these.
        compared: What the file was compared with in full: nothing, ``"data"``, or ``"data"`` and ``"model"``.
        warnings: What is no error but should be known: the file is used after the last day that it states, or before
            the first.
        own_division: Name of the division if it is somebody's own, on whose word the certificate rests. Else empty.
    """

    holds: bool
    reasons: tuple[str, ...]
    checked: tuple[str, ...]
    not_checked: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    own_division: str = ""

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return "\n".join([self._headline(), *(f"  {name}: {what}" for name, what in self._entries())])

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        from agnncert.notebook import framed, paragraph, table  # only here: no verdict depends on it

        return framed(paragraph(self._headline()) + table([], self._entries()))

    def _headline(self) -> str:
        if not self.holds:
            return "The certificate is refused."
        conclusion = _CONCLUSION[len(self.compared)]
        if not self.own_division:
            return conclusion
        return f"{conclusion} {_ON_WORD.format(self.own_division)}"

    def _entries(self) -> list[tuple[str, str]]:
        """Returns everything that was found, each with what it is."""
        lists = {
            "warning": self.warnings,
            "wrong": self.reasons,
            "checked": self.checked,
            "not checked": self.not_checked,
        }
        return [(name, what) for name, entries in lists.items() for what in entries]


_CONCLUSION = (
    "The arithmetic of this file is consistent. Graph and model were not checked.",
    "The arithmetic of this file is consistent, and its targets are those of the graph. The model was not checked.",
    "The certificate holds for this graph and this model, under the assumptions that it states.",
)
_ON_WORD = (
    "It rests on the word of the author of the division {:.80}: that its groups depend on ids alone, and that no "
    "change moves more votes than it states."
)


@suggests_arguments
def verify(
    file: "str | PathLike[str] | Certificate",
    data: "GraphData | None" = None,
    model: "Model | None" = None,
    *,
    recheck: float = 0,
    seed: int = 0,
    defence: "AsDefence | None" = None,
    progress: "OnProgress | None" = None,
    workers: "Workers | None" = None,
) -> Verdict:
    """Checks a certificate file: from the file alone, or everything in it that follows from a graph and a model.

    Args:
        file: The certificate file, or a certificate, which is then written to a temporary file for this check.
        data: The graph (or list of graphs) that it is about, to compare targets, degrees and subgraphs with.
        model: The model, which is audited, and whose votes are all recomputed.
        recheck: How many votes, chosen at random, the naive engine computes once more. ``math.inf`` stands for
            all. It needs data and model. Random samples are all drawn again if this is not 0.
        seed: Seed of that choice.
        defence: The defence, if it is your own division or defence. Built-in ones are read from the file.
        progress: Called while votes are recomputed.
        workers: Who computes the votes again, such as ``ac.Ray(address="auto")``, if the data is a graph in parts
            (``open_graph``). Defaults to this process.

    Returns:
        A verdict, which says what was checked and what was not. From the file alone, only its arithmetic can be
        checked, because anyone can write consistent votes. A damaged or altered file does not hold; that is not an
        error.

    Raises:
        CertificateError: There is no such file.
        SettingsError: ``model`` or ``recheck`` was given without what they need.
        GraphError: The data cannot be used as it is, or is no data.
        ModelContractError: The model is no model, or cannot be called.
    """
    if (model is not None and data is None) or (recheck and model is None):
        raise SettingsError("computing votes again needs both the graph and the model: pass data= and model=.")
    if data is not None:
        from agnncert.engine.arguments import require_kinds  # only here: the file alone needs no torch

        require_kinds(file=None, data=data, model=model, defence=defence)
    options = (recheck, seed, progress, workers)
    if isinstance(file, str | PathLike):
        if not Path(file).is_file():
            raise CertificateError(f"there is no file {file}.")
        return _verify_file(Path(file), data, model, options, defence)
    if not hasattr(file, "save"):
        raise SettingsError(
            f"verify takes a certificate or its file first, got a {type(file).__name__}: verify(certificate), or "
            "verify(file, data, model)."
        )
    with TemporaryDirectory() as folder:
        saved = Path(folder) / "certificate.cert"
        file.save(saved)
        return _verify_file(saved, data, model, options, defence)


def _verify_file(
    file: Path, data: Any, model: Any, options: tuple[float, int, "OnProgress | None", "Workers | None"], defence: Any
) -> Verdict:
    try:
        contents, findings = _check(file, data, model, options, defence)
    except CertificateError as error:
        return Verdict(False, (str(error),), ())
    except MemoryError:
        return Verdict(False, (f"{file} describes more votes than there is memory to count them in.",), ())
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        if data is not None:  # the graph or the model may be to blame, and their owner wants to know where
            raise
        return Verdict(False, (f"{file} makes no sense: {type(error).__name__}: {error}.",), ())
    verdict = Verdict(
        not findings.wrong,
        tuple(findings.wrong),
        tuple(findings.checked),
        (*findings.not_checked, *_never_checked(contents, findings)),
        () if findings.wrong else tuple(findings.compared),
        _warnings(contents),
        _own_division(contents),
    )
    log.info("%s: %s", file, "refused" if findings.wrong else _CONCLUSION[len(verdict.compared)])
    return verdict


def _check(
    file: Path, data: Any, model: Any, options: tuple[float, int, "OnProgress | None", "Workers | None"], defence: Any
) -> tuple[Contents, Findings]:
    """Checks the file alone, and then what follows from the graph and the model, if they are given."""
    checker, wrong = _check_alone(file)
    contents = checker.contents
    derived = _derived(contents)
    if wrong or data is None:
        names = ["what the classes are called: pass data"] if contents.class_names else []
        return contents, Findings(wrong, derived, [*checker.not_checked(), *names])
    from agnncert.defence import RecomputeOptions  # only here: the file alone needs no torch
    from agnncert.recompute import check_against_graph

    found = check_against_graph(contents, data, model, RecomputeOptions(*options), defence)
    return contents, replace(
        found,
        wrong=[*found.wrong, *_other_names(contents, data)],
        checked=[*derived, *found.checked],
        not_checked=[*found.not_checked, *_names_without_data(contents, data)],
    )


def _derived(contents: Contents) -> list[str]:
    """Returns which statements of a file were derived again, in words."""
    says_neighbours = bool((contents.arrays["new_neighbours"] >= 0).any())  # else they are -1: nothing is stated
    numbers = "label, radius and new neighbours" if says_neighbours else "label and radius"
    checked = ["the claim, word for word", f"{numbers} of {len(contents.arrays['row']):,} targets{_labels(contents)}"]
    if contents.budgets:
        checked.append(f"{len(contents.budgets)} stated budgets")
    if contents.excluded:
        checked.append("how many targets cannot get which label")
    return checked


def _own_division(contents: Contents) -> str:
    """Returns the name of the division if no theorem of the library covers it, or an empty text.

    The edge-centric division for changes of edges alone counts by stated costs too, and is the library's own.
    """
    theorem = str(contents.settings.get("theorem", ""))
    division = contents.claim.division
    is_built_in = re.fullmatch(r"edge-centric\(T=\d+, [^()]*edges only[^()]*\)", division) is not None
    return division if theorem.startswith("custom/") and not is_built_in else ""


def _labels(contents: Contents) -> str:
    """Returns how many targets have which label, by the names of the classes. It is empty if they have none."""
    label = contents.arrays["label"]
    numbers = [(name, int((label == k).sum())) for k, name in enumerate(contents.class_names)]
    listed = [f"{number:,} {name}" for name, number in numbers if number]
    if not listed or len(listed) > MOST_LISTED:
        return ""
    return f": {', '.join(listed)}"


def _other_names(contents: Contents, data: Any) -> Iterator[str]:
    """Yields what is wrong if the classes of the data have other names than those of the file."""
    named = names_in_data(data, len(contents.class_names)) if contents.class_names else ()
    if named and named != contents.class_names:
        yield f"the file calls the classes {', '.join(contents.class_names):.200}, the data {', '.join(named):.200}"


def _names_without_data(contents: Contents, data: Any) -> Iterator[str]:
    """Yields that nobody could compare the names of classes, if only the file has such names."""
    if contents.class_names and not names_in_data(data, len(contents.class_names)):
        yield "what the classes are called: the data gives them no such names"


def _never_checked(contents: Contents, findings: Findings) -> Iterator[str]:
    """Yields what no check of this library can show."""
    threshold = contents.claim.threshold
    if threshold is not None and not findings.compared:
        yield "how many of the targets that the threshold was chosen on get the positive label: pass data and model"
    if contents.claim.notes and not findings.notes_compared:
        yield "the notes that the author added to the claim, which are no part of what is proved"
    if contents.issued:
        yield "who issued the file: verify a signature of it"
    yield "which version of the library made the file"
    yield "whether the claim's assumptions hold where the model is used: agnncert show FILE prints them"


def _warnings(contents: Contents) -> tuple[str, ...]:
    """Returns what a reader should know about the days for which a file was issued, which are those of UTC."""
    today = datetime.now(UTC).date().isoformat()
    dates = contents.issued
    if dates.get("until", "9999") < today:
        return (f"it was issued until {dates['until']}, which has passed",)
    if dates.get("on", "") > today:
        return (f"it is issued on {dates['on']}, which has not come yet",)
    return ()


def check_file(file: Path) -> tuple[Contents, list[str]]:
    """What a file says, and which of its statements do not follow from the evidence in it.

    Raises:
        CertificateError: It is no certificate, or its evidence contradicts itself, so that nothing follows from it.
    """
    checker, wrong = _check_alone(file)
    return checker.contents, wrong


def _check_alone(file: Path) -> tuple[FileChecker, list[str]]:
    """As :func:`check_file`, with the checker that has read the file."""
    contents = read_contents(file)
    checker = checked(contents)
    wrong = list(check_premise(contents.claim))
    foreign = list(check_budgets(contents, checker.training_fields))
    wrong += foreign or checker.check()
    if not wrong and contents.excluded:
        wrong = wrong_exclusions(checker)
    return checker, wrong
