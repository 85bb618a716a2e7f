"""``write_page``: all cards of a folder as one page that sorts and filters without a network.

Controls are shown whatever is filtered, and so is the ceiling: what the undefended model gets right without an attack.
"""

from pathlib import Path
from typing import Any

from agnncert.report.html import fill_page
from agnncert.storage import write_atomic
from agnncert_peers.card_check import CardVerdict, card_files, check_folder
from agnncert_peers.cards import PROTOCOLS, THREATS, Card, read_card

_HERE = Path(__file__).parent
CEILING = "undefended"  # a control whose accuracy without an attack no certificate of the same model can exceed


def write_page(folder: str | Path, path: str | Path, root: str | Path | None = None) -> Path:
    """Checks all cards of a folder and writes them as one page.

    A card that is wrong is not shown; the page says how many there are, and why.

    Args:
        folder: Folder of the cards.
        path: The file to write; its folder is made if it is missing.
        root: Folder of the datasets, if targets are to be compared with these too.
    """
    verdicts = {verdict.file.name: verdict for verdict in check_folder(folder, root)}
    shown = []
    for file in card_files(folder):
        verdict = verdicts[file.name]
        if not verdict.wrong:
            shown.append((read_card(file), verdict))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, render(shown, list(verdicts.values())))
    return path


def render(cards: list[tuple[Card, CardVerdict]], verdicts: list[CardVerdict]) -> str:
    """Returns the page as text.

    Args:
        cards: The cards that are not wrong, with what became of them.
        verdicts: What became of all cards.
    """
    sizes = sorted({size for card, _ in cards for size in card.sizes})
    threats = {card.threat for card, _ in cards}
    values = dict(
        rows=[_row(card, verdict, sizes) for card, verdict in sorted(cards, key=_order)],
        sizes=sizes,
        choices={
            "dataset": sorted({card.dataset for card, _ in cards}),
            "protocol": sorted({card.protocol for card, _ in cards}),
            "threat": [threat for threat in THREATS if threat in threats],
        },
        threats=THREATS,
        protocols=PROTOCOLS,
        derived=sum(verdict.derived for verdict in verdicts),
        complete=sum(verdict.status == "derived again" for verdict in verdicts),
        missing=sum(verdict.status == "not derived again" for verdict in verdicts),
        wrong=[verdict for verdict in verdicts if verdict.wrong],
        defences=len({card.defence for card, _ in cards if not card.control}),
    )
    script = (_HERE / "cards.js").read_text("utf-8")
    style = (_HERE / "cards.css").read_text("utf-8")
    return fill_page(_HERE / "cards.html.j2", values, script=script, style=style)


def _order(pair: tuple[Card, CardVerdict]) -> tuple[Any, ...]:
    card = pair[0]
    return card.dataset, card.protocol, [*THREATS].index(card.threat), not card.control, -sum(card.claimed[1:])


def _row(card: Card, verdict: CardVerdict, sizes: list[int]) -> dict[str, Any]:
    at = dict(zip(card.sizes, card.claimed, strict=True))
    spread = {}
    for position, size in enumerate(card.sizes):
        shares = [run.certified[position] for run in card.runs]
        spread[size] = max(shares) - min(shares)
    seconds = [sum(run.seconds.values()) for run in card.runs if run.seconds]
    return {
        "card": card,
        "at": [at.get(size) for size in sizes],
        "spread": [spread.get(size) for size in sizes],
        "seconds": sum(seconds) / len(seconds) if seconds else None,
        "kind": _kind(card),
        "derived": verdict.status == "derived again",
    }


def _kind(card: Card) -> str:
    if not card.control:
        return "defence"
    return "ceiling" if card.defence.startswith(CEILING) else "control"
