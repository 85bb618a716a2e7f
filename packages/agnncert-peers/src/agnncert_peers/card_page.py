"""``write_page``: all cards of a folder as one page that sorts and filters without a network.

Controls are shown whatever is filtered, and so is the ceiling: what the undefended model gets right without an attack.
"""

from pathlib import Path
from typing import Any

from agnncert.report.html import fill_page
from agnncert.storage import write_atomic
from agnncert_peers.cards import PROTOCOLS, THREATS, Card, CardVerdict, card_files, check_folder, read_card

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
    good = [file for file in card_files(folder) if not verdicts[file.name].wrong]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, render([(read_card(file), verdicts[file.name]) for file in good], list(verdicts.values())))
    return path


def render(cards: list[tuple[Card, CardVerdict]], verdicts: list[CardVerdict]) -> str:
    """The page as text."""
    sizes = sorted({size for card, _ in cards for size in card.sizes})
    values = dict(
        rows=[_row(card, verdict, sizes) for card, verdict in sorted(cards, key=_order)],
        sizes=sizes,
        choices={
            "dataset": sorted({card.dataset for card, _ in cards}),
            "protocol": sorted({card.protocol for card, _ in cards}),
            "threat": [threat for threat in THREATS if any(card.threat == threat for card, _ in cards)],
        },
        threats=THREATS,
        protocols=PROTOCOLS,
        derived=sum(verdict.derived for verdict in verdicts),
        complete=sum(verdict.status == "derived again" for verdict in verdicts),
        missing=sum(verdict.status == "not derived again" for verdict in verdicts),
        wrong=[verdict for verdict in verdicts if verdict.wrong],
        defences=len({card.defence for card, _ in cards if not card.control}),
    )
    script, style = ((_HERE / name).read_text("utf-8") for name in ("cards.js", "cards.css"))
    return fill_page(_HERE / "cards.html.j2", values, script=script, style=style)


def _order(pair: tuple[Card, CardVerdict]) -> tuple[Any, ...]:
    card = pair[0]
    return card.dataset, card.protocol, [*THREATS].index(card.threat), not card.control, -sum(card.claimed[1:])


def _row(card: Card, verdict: CardVerdict, sizes: list[int]) -> dict[str, Any]:
    at = dict(zip(card.sizes, card.claimed, strict=True))
    ceiling = card.control and card.defence.startswith(CEILING)
    spread = {
        size: max(shares) - min(shares)
        for size, *shares in zip(card.sizes, *(run.certified for run in card.runs), strict=True)
    }
    seconds = [sum(run.seconds.values()) for run in card.runs if run.seconds]
    return {
        "card": card,
        "at": [at.get(size) for size in sizes],
        "spread": [spread.get(size) for size in sizes],
        "seconds": sum(seconds) / len(seconds) if seconds else None,
        "kind": "ceiling" if ceiling else "control" if card.control else "defence",
        "derived": verdict.status == "derived again",
    }
