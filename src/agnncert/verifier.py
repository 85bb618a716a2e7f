"""``verify``: is a certificate what it says it is?

From the file alone, every statement is derived again by code that shares nothing with the code that made it
(``proof.check``); neither torch nor the proving half of ``proof`` is imported. Given the graph and the model, ballots
are cast again with the naive engine as well (``replay``).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agnncert.errors import CertificateError, SettingsError
from agnncert.proof.check import check_contents
from agnncert.proof.file import Contents, read_contents


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        holds: Whether nothing is wrong.
        reasons: What is wrong; empty if the certificate holds.
        checked: What was checked.
    """

    holds: bool
    reasons: tuple[str, ...]
    checked: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        head = "The certificate holds." if self.holds else "The certificate is refused."
        wrong = [f"  wrong: {reason}" for reason in self.reasons]
        return "\n".join([head, *wrong, *(f"  checked: {what}" for what in self.checked)])


def verify(path: str | Path, data: Any = None, model: Any = None, ballots: float = 0, seed: int = 0) -> Verdict:
    """Checks a certificate file, and with graph and model also the ballots in it.

    Name every argument after the file: the library's other functions take the model before the data.

    Args:
        path: The file.
        data: The graph (or list of graphs) that it speaks about: is it the same, with the same subgraphs?
        model: The model: is it the same?
        ballots: How many ballots to cast again, chosen at random; ``math.inf`` for all. Needs data and model.
            A certificate from random samples is drawn again as a whole, at the cost of certifying.
        seed: Seed of that choice.

    Returns:
        A verdict. A file that is damaged, altered, cut short, of a future version, or about something else
        does not hold; that is not an error.

    Raises:
        CertificateError: There is no such file.
        SettingsError: ``model`` or ``ballots`` was given without what they need.
    """
    file = Path(path)
    if not file.is_file():
        raise CertificateError(f"there is no file {file}.")
    if (model is not None and data is None) or (ballots and model is None):
        raise SettingsError("casting ballots again needs both the graph and the model: pass data= and model=.")
    try:
        contents = read_contents(file)
        wrong, checked = check_contents(contents)
        if not wrong and data is not None:
            wrong += _check_against_graph(contents, file, data, model, ballots, seed)
            checked += ["the graph", *(["the model"] if model is not None else [])]
            again = f"{ballots:,.0f} ballots cast" if contents.kind == "ballots" else "all samples drawn"
            checked += [f"{again} again"] if ballots else []
    except CertificateError as error:
        return Verdict(False, (str(error),), ())
    except MemoryError:
        return Verdict(False, (f"{file} describes more ballots than there is memory to count them in.",), ())
    return Verdict(not wrong, tuple(wrong), tuple(checked))


def _check_against_graph(contents: Contents, file: Path, data: Any, model: Any, ballots: float, seed: int) -> list[str]:
    # Imported here, so that a check of the file alone imports neither torch nor the proving half.
    from agnncert.proof.certificate import certificate_of
    from agnncert.replay import check_against_graph

    return check_against_graph(certificate_of(contents, file), data, model, ballots, seed)
