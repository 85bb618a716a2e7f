"""The results page: a template whose numbers are read from the committed rows."""

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from experiments.documentation import facts, unchangeable
from experiments.documentation.sources import PROJECT, document, rows
from experiments.documentation.tables import STACKED_SIZES
from experiments.paper import tables as paper

PAGE = PROJECT / "docs" / "results.md"
FOLDER = PROJECT / "docs" / "results"
ETHEREUM_RULE = "stacked-votes(levels=1, mean, edge values)"
# What each table holds.
FILES = {
    "paper": "every setting of the paper's experiments",
    "chosen-rules": "voting rules chosen for a size",
    "stacked-votes": "stacked votes, by rule and size",
    "few-labels": "20 labels per class, with and without a teacher",
    "few-labels-choices": "other taught students, on validation nodes",
    "fraud": "AUC and recall at 1 % and 10 % false positives",
    "trusted-history": "recall with trusted edges",
    "field": "all defences, many and few labels, taught and untaught, three attacks",
    "other-defences": "Bi-RS and GNNCert by attack and rule",
    "ceilings": "what no classifier of a statistic can exceed",
    "graph-votes": "graphs: models that read only what cannot be changed, and votes beside them",
    "graph-field": "graphs: defences under four threats",
    "code": "Big-Vul, by kind of edit",
    "speed": "votes in forward passes",
    "large": "the synthetic graph of Amazon2M's size",
    "pairs": "decisions about links and ratings",
    "poisoned-labels": "flipped training labels, all settings",
}


def ethereum(size: int) -> float:
    """Returns the certified accuracy on Ethereum against changed payment partners."""
    found = [row for row in rows("stacked") if row["rule"] == ETHEREUM_RULE]
    return float(sum(row["structure"][STACKED_SIZES.index(size)] for row in found) / len(found))


def text() -> str:
    """Returns the page."""
    loader = PackageLoader("experiments.documentation", ".")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    names: dict[str, Any] = {
        name: getattr(part, name) for part in (unchangeable, facts) for name in dir(part) if not name.startswith("_")
    }
    own = {
        "p": facts.percent, "one": lambda value: f"{value:.1f}", "whole": lambda value: f"{value:.0f}",
        "thousands": lambda value: f"{value:,.0f}", "eth": ethereum, "document": document, "paper": paper, "files": FILES,
        "ETH": "ethereum-phishing", "OTC": "bitcoin-otc", "BOTS": "cresci-15", "WORK": "tolokers",
    }  # fmt: skip
    written = environment.get_template("results.md.j2").render(**(names | own)).strip() + "\n"
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", written)
