"""``Fault``: one way in which a certificate can be false."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.soundness.forger.forging import Draft


@dataclass(frozen=True)
class Fault:
    """One way of being false.

    Attributes:
        why: Why the file is false, for a reader.
        says: Part of the reason that this library's verifier gives.
        alter: Alters the draft; raises :class:`~alterations.DoesNotApply` where that is impossible.
        found_with: What a checker needs to see it: ``"file"``, ``"graph"`` or ``"model"``.
        understates: Whether what is stated is true, but less than what follows; a checker of soundness alone may accept.
        rules: Rules, or golden files, that the fault is made in.
    """

    why: str
    says: str
    alter: Callable[[Draft], None]
    rules: tuple[str, ...]
    found_with: str = "file"
    understates: bool = False
