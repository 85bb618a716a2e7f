"""The model card of a run folder: what the model is, what it was made from, what it can do and what not."""

from typing import Any

from agnncert.report.tables import laid_out
from agnncert.studies.folder import MODEL_CARD, VOTE, RunFolder

_INTENDED = """\
The model is meant to vote: the certified label of a {task} is the one that most subgraphs of the graph elect
(`ac.certify(model, data, division).label`), not the output of one pass over the whole graph. A certificate speaks about
the graph it was made on, and says what no attack *starting from that graph* can change."""
_LIMITS = """\
- A certified label stays the same; it need not be correct.
- Nothing is proved about attacks on the training data.
- Ids must stay with their {task}s' nodes, and features must be prepared as they were here.
- Compare the accuracies above: a model that sees no edges needs no proof. If it does as well, use that one."""

_ABOUT_DATA = ("name", "task", "graphs", "nodes", "edges", "features", "classes", "digest")


def write_card(folder: RunFolder) -> None:
    """Writes, or writes anew, the card of a run from what its folder holds."""
    settings, data = folder.settings, folder.data
    made = {**settings.get("certify", {}), **settings.get("train", {})}
    rows = [row for row in folder.rows() if row["size"] is None]
    task = str(data.get("task", "node"))
    parts = [
        f"# Model card: {_plain(made.get('model', 'model'))} on {_plain(data.get('name', 'data'))}",
        "## What it is\n\n" + _table({
            "model": made.get("model"), **made.get("set", {}), "division": made.get("division"),
            "subgraphs": made.get("groups"), **_vote(folder, made),
            "seed": made.get("seed", 0), "weights": folder.weights.name,
        }),
        "## What it was made from\n\n" + _table(
            {name: data.get(name) for name in _ABOUT_DATA}
        ),
        "## How well it does\n\n" + _table({row["measure"]: _number(row["measure"], row["value"]) for row in rows}),
        "## What it is for\n\n" + _INTENDED.format(task=task),
        "## What to mind\n\n" + _LIMITS.format(task=task),
        "## How to make and check it\n\n" + "\n".join(
            [*(f"    agnncert {step} --settings settings.toml" for step in settings), "    agnncert verify ."]
        ),
    ]  # fmt: skip
    folder.write(MODEL_CARD, "\n\n".join(parts) + "\n")


def _vote(folder: RunFolder, made: dict[str, Any]) -> dict[str, Any]:
    """How votes are counted, if not as usual; also for which size that was chosen, and with what division."""
    choice = folder.read_json(VOTE)
    chosen: dict[str, Any] = next((one for one in choice.get("candidates", []) if one.get("chosen")), {})
    vote = chosen or made
    return {
        "vote chosen for size": choice.get("size"),
        "what decides": chosen.get("decides"),
        "certified with": chosen.get("division"),
        "empty subgraphs cast": vote.get("empty"),
        "votes given in advance": vote.get("prior"),
    }


def _table(values: dict[str, Any]) -> str:
    rows = [[_plain(name), _plain(value)] for name, value in values.items() if value is not None]
    return laid_out("markdown", ["", ""], rows, "ll") if rows else "Nothing yet."


def _number(measure: str, value: float) -> str:
    return f"{100 * value:.1f} %" if "accuracy" in measure else f"{value:g}"


def _plain(value: Any) -> str:
    """Text on one line that Markdown takes for text: names come from the user's data."""
    return " ".join(str(value).replace("`", "'").replace("<", "&lt;").split())
