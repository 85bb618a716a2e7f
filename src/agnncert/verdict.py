"""``verify``: is a certificate what it says it is?

From the file alone, every statement is derived again by code that shares nothing with the code that made it
(``proof.check``); neither torch nor the proving half of ``proof`` is imported. Given the graph and the model, ballots
are cast again with the naive engine as well (``replay``).
"""

import logging
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agnncert.certificates.file import read_contents
from agnncert.errors import CertificateError, SettingsError
from agnncert.verifier.check import check_contents

if TYPE_CHECKING:
    from agnncert.progress import OnProgress

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        holds: Whether nothing is wrong.
        reasons: What is wrong; empty if the certificate holds.
        checked: What was checked.
        not_checked: What was not, and had to be taken as it stands; ``docs/trust.md`` explains each of these.
    """

    holds: bool
    reasons: tuple[str, ...]
    checked: tuple[str, ...]
    not_checked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        head = "The certificate holds." if self.holds else "The certificate is refused."
        lists = {"wrong": self.reasons, "checked": self.checked, "not checked": self.not_checked}
        return "\n".join([head, *(f"  {name}: {what}" for name, entries in lists.items() for what in entries)])


def verify(
    file: str | PathLike[str],
    *,
    data: Any = None,
    model: Any = None,
    recheck: float = 0,
    seed: int = 0,
    division: Any = None,
    progress: "OnProgress | None" = None,
) -> Verdict:
    """Checks a certificate file: from the file alone, or everything in it that follows from a graph and a model.

    Args:
        file: The certificate file.
        data: The graph (or list of graphs) that it speaks about: are targets, ids, true classes, degrees and subgraphs
            those of this graph?
        model: The model: is it fit, and does it cast these ballots? All of them are cast again.
        recheck: How many ballots to cast once more by the plain engine, one subgraph at a time, chosen at random;
            ``math.inf`` for all. Needs data and model. A certificate from random samples is drawn again as a whole if
            this is not 0, at the cost of certifying.
        seed: Seed of that choice.
        division: Your own division, if the certificate was made with one; built-in ones are read from the file.
        progress: Called while ballots are cast again.

    Returns:
        A verdict, which also says what was not checked. A file that is damaged, altered, cut short, of a future
        version, or about something else does not hold; that is not an error.

    Raises:
        CertificateError: There is no such file.
        SettingsError: ``model`` or ``recheck`` was given without what they need.
        GraphError: The data cannot be used as it is.
    """
    if not isinstance(file, str | PathLike):
        raise SettingsError(
            f"verify takes the file of a certificate first, got a {type(file).__name__}: certificate.save(file), then "
            "verify(file, data=…, model=…)."
        )
    file = Path(file)
    if not file.is_file():
        raise CertificateError(f"there is no file {file}.")
    if (model is not None and data is None) or (recheck and model is None):
        raise SettingsError("casting ballots again needs both the graph and the model: pass data= and model=.")
    try:
        contents = read_contents(file)
        wrong, checked = check_contents(contents)
        not_checked = [*_FILE_ALONE[contents.kind]]
        if not wrong and data is not None:
            from agnncert.recompute import check_against_graph  # only here: the file alone needs no torch

            found = check_against_graph(contents, data, model, recheck, seed, division, progress)
            wrong, checked, not_checked = [*found.wrong], [*checked, *found.checked], [*found.not_checked]
    except CertificateError as error:
        return Verdict(False, (str(error),), ())
    except MemoryError:
        return Verdict(False, (f"{file} describes more ballots than there is memory to count them in.",), ())
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        if data is not None:  # the graph or the model may be to blame, and their owner wants to know where
            raise
        return Verdict(False, (f"{file} makes no sense: {type(error).__name__}: {error}.",), ())
    remarks = contents.claim.notes and (contents.kind == "ballots" or data is None)
    not_checked += ["the notes that the author added to the claim"] if remarks else []
    not_checked += ["which version of the library made the file", _ASSUMED]
    verdict = Verdict(not wrong, tuple(wrong), tuple(checked), tuple(not_checked))
    log.info("%s: %s", file, str(verdict).partition("\n")[0])
    return verdict


_ASSUMED = "whether the claim's assumptions hold where the model is used: agnncert show FILE prints them"
_FILE_ALONE = {
    "ballots": (
        "whether the targets, ids, true classes and degrees are those of a graph: pass data",
        "whether a model cast these ballots, and may be certified: pass data and model",
    ),
    "samples": (
        "whether the targets, ids, true classes and degrees are those of a graph: pass data",
        "whether the samples were drawn from a model and this noise: pass data and model, and set recheck",
    ),
}
