"""The tables of the page about models of PyTorch Geometric, from the rows of the audit."""

from experiments.documentation import sources
from experiments.documentation.facts import table
from experiments.documentation.sources import Row

HOW = {"construction": "known layers", "test": "by tests"}


def pyg_accepted() -> str:
    """Returns the accepted models of each kind, those of known layers first."""
    found = [row for row in sources.rows("pyg_models") if row["outcome"] == "accepted"]
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in found):
        for locality, how in HOW.items():
            names = [row["model"] for row in found if (row["kind"], row["locality"]) == (kind, locality)]
            if names:
                lines.append([kind, how, ", ".join(f"`{name}`" for name in names)])
    return table(["kind", "local by", "accepted"], lines, words=3)


def pyg_refused() -> str:
    """Returns the models that are refused, each with the reason that the audit gives."""
    rows = sources.rows("pyg_models")
    lines = [[f"`{row['model']}`", _why(row)] for row in rows if row["outcome"] == "refused"]
    return table(["refused", "why"], lines, words=2)


def pyg_counted() -> str:
    """Says how many models were tried, and what became of them."""
    rows = sources.rows("pyg_models")
    counts = {what: sum(row["outcome"] == what for row in rows) for what in ("accepted", "refused", "raw error")}
    missing = [f"`{row['model']}`" for row in rows if row["outcome"] == "not built"]
    others = f" {' and '.join(missing)} need packages that are not installed here." if missing else ""
    return (
        f"Of {len(rows)} models, {counts['accepted']} are accepted for the node-centric division and "
        f"{counts['refused']} are refused; {counts['raw error']} ended with an error of another library.{others}"
    )


def _why(row: Row) -> str:
    """Returns the reason in one line; what failed is said by the layer, the rest in the message of the audit."""
    return str(row["why"]).split(", with torch")[0].split("; the output")[0]
