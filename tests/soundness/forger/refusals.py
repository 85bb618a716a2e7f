"""A forgery by its name: a draft to write in, and the assertion that it is refused."""

from pathlib import Path

from tests.soundness.forger.forging import Draft, seal
from tests.soundness.forger.judging import lies, verdict_on
from tests.soundness.forger.world import World, world_of


def opened(name: str) -> tuple[World, Draft]:
    """A world, and a draft of its honest certificate to write in."""
    return world_of(name), world_of(name).honest.copy()


def refuse(world: World, draft: Draft, folder: Path, situation: str = "all votes") -> None:
    """Asserts that the draft is a lie, looks perfect to whoever has the file alone, and is refused in a situation."""
    assert lies(world, draft), "this forgery changes nothing"
    assert seal(draft, folder / "forged.cert")
    verdict = verdict_on(folder / "forged.cert", world, situation)
    assert not verdict.holds, f"accepted: {lies(world, draft)}"
