"""``build_report``: writes a certificate as one HTML file that needs no other file.

The file holds the text, the scripts, the numbers of the charts, and the votes of all targets as packed arrays.
"""

import base64
import gzip
import hashlib
import json
import logging
import math
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
import numpy.typing as npt
from markupsafe import Markup

import agnncert
from agnncert.certificates.budget import Budget
from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.certificates.votes import VoteRecord
from agnncert.proving.theorems import LARGEST_AMOUNT, count_votes
from agnncert.proving.vote_words import division_words, target_words
from agnncert.proving.words import whole
from agnncert.report import text
from agnncert.report.summary import AttackUnit, ReportContext, Shares, Summary, changes_only, summarise
from agnncert.storage import write_atomic

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate

_EDGES = (
    ("add_edges", "Edges added"),
    ("delete_edges", "Edges deleted"),
    ("change_edges", "Edges given another weight, attribute or number of copies"),
)
_NODES = (
    ("inject_nodes", "Nodes injected"),
    ("edges_per_injected", "… each with at most this many edges"),
    ("delete_nodes", "Nodes deleted"),
)
_FEATURES = {"node": "Other nodes whose features change", "graph": "Nodes whose features change"}
Array = npt.NDArray[Any]
ANY = 2**31 - 1  # stands for "any number" in whole-number arrays
ALIGNMENT = 8
COMPRESSION = 6  # the highest level takes five times as long for two per cent
DETAIL_BYTES = 2_600_000  # compressed; single votes beyond this stay out of the page, so that it opens anywhere
MOST_HOVERED = 1000  # sizes at which the pointer finds a value
TABLE_ROWS = 12
MOST_CURVES = 8  # classes with a curve of their own: as many as there are colours
SIZE_ONLY_WORD = "size alone (envelope)"
CEILING = "To the right of 1, a certified label is the one that is given without any edges."
UNIT_SIZES = (0, 1, 2, 3, 5, 10, 20, 50)
_SENTENCES = (
    text.unjudged,
    text.share_word,
    text.headline,
    text.beside,
    text.structure_notes,
    text.contradictions,
    text.facts,
)
# Rows of the table of budgets: a name, the field that grows, and the rest of the budget.
_SINGLE_CHANGES: tuple[tuple[str, str, Budget], ...] = (
    ("Edges added", "add_edges", Budget()),
    ("Edges deleted", "delete_edges", Budget()),
    ("Edges given another weight, attribute or number of copies", "change_edges", Budget()),
    ("Nodes injected, with up to 5 edges each", "inject_nodes", Budget(edges_per_injected=5)),
    ("Nodes injected, with any number of edges", "inject_nodes", Budget(edges_per_injected=math.inf)),
    ("Nodes deleted", "delete_nodes", Budget()),
)
_AMOUNTS = (1, 3, 10)  # columns there
logger = logging.getLogger(__name__)
_HERE = Path(__file__).parent
_SCRIPTS = ("base", "rules", "per_neighbour", "charts", "explorer", "table", "detail", "address", "page")
_FONTS = {"Inter": "inter.woff2", "Source Serif 4": "source-serif-4.woff2"}


def build_report(certificate: "Certificate", out_path: str | Path, *, context: ReportContext | None = None) -> Path:
    """Writes a certificate as one HTML page that needs no network.

    The page shows the claim, the certified accuracy, an explorer for other budgets, every target, and how to
    check the certificate. The explorer gives the same answers as ``certificate.holds_against``.

    Args:
        certificate: What to show.
        out_path: The file to write; its folder is created if it is missing.
        context: Truth, degrees, other models' accuracy, attacks and environment to show beside the certificate.

    Returns:
        The path of the file.

    Raises:
        SettingsError: The context does not fit the certificate.
    """
    summary = summarise(certificate, context)
    out_path = Path(out_path)
    out_path.parent.mkdir(parents=True, exist_ok=True)
    page = render(summary)
    write_atomic(out_path, page)
    logger.info("wrote %s (%.1f MB)", out_path, len(page) / 1e6)
    return out_path


def render(summary: Summary) -> str:
    """The page as text."""
    meta, data = page_data(summary)
    texts = page_texts(summary) | {"meta": Markup(json_for_html(meta)), "data": Markup(data)}
    return fill_page(_HERE / "page.html.j2", texts, script=page_script())


def page_texts(summary: Summary) -> dict[str, Any]:
    """What is filled into the template."""
    claim, context = summary.certificate.claim, summary.context
    path = context.certificate_path or "certificate.cert"
    return {
        "claim": claim,
        "context": context,
        "node": claim.task == "node",
        "certain": claim.guarantee == "deterministic",
        "alpha": f"{claim.alpha or 0:g}",
        "confidence": f"{1 - (claim.alpha or 0):g}",
        "words": summary.words,
        "things": summary.targets,
        "has_explorer": summary.votes is not None,
        "budgets": budget_table(summary),
        "has_truth": summary.truth is not None,
        "has_added": summary.added is not None,
        "has_structure": summary.structure is not None,
        "num_targets": summary.num_targets,
        "num_unproved": int((summary.certificate.radius < 0).sum()),
        "whole": whole,
        **{function.__name__: function(summary) for function in _SENTENCES},
        "class_table": dict(zip(("titles", "rows"), text.class_table(summary), strict=True)),
        "figures": text.key_figures(summary),
        "accuracy_table": accuracy_table(summary),
        "degree_table": degree_table(summary),
        "controls": controls(claim.task, context.unit),
        "unit": unit_table(summary),
        "certificate_path": path,
        "verify_path": shlex.quote(path),
        "recheck": f" --recheck {summary.words.recheck}" if summary.words.recheck else "",
        "run_path": context.run_path and shlex.quote(context.run_path),
    }


def page_data(summary: Summary) -> tuple[dict[str, Any], str]:
    """What the scripts read: settings and words (``meta``), and the packed arrays as text."""
    claim = summary.certificate.claim
    record = summary.votes
    arrays = target_arrays(summary) | count_arrays(summary)
    detailed = 0
    if record is not None:
        detailed = num_detailed(record)
        arrays |= vote_arrays(record, detailed)
    places, packed = pack(arrays)
    names = summary.context.class_names
    counts = summary.words.counts
    meta = {
        "arrays": places,
        "any": ANY,
        "task": claim.task,
        "theorem": None,
        "num_targets": summary.num_targets,
        "num_classes": summary.certificate.counts.shape[1],
        "class_names": None if names is None else [str(name) for name in names],
        "has_truth": summary.truth is not None,
        "num_judged": summary.num_judged,
        "has_degree": summary.degree is not None,
        "has_votes": record is not None,
        "num_detailed": detailed,
        "most_votes": int(np.maximum(summary.certificate.counts, 0).sum(axis=1).max(initial=1)),
        "count_words": {
            "title": counts.title,
            "one": counts.one,
            "many": counts.many,
            "of_target": counts.of_target,
            "scale": counts.scale,
            "total": counts.total,
        },
        "degree_title": "Degree" if claim.task == "node" else "Edges",
        "neighbours_title": text.added_title(summary),
        "radius_sentence": radius_sentence(summary),
        "nothing_proved": summary.words.nothing_proved,
        "example": _example(record, detailed),
        "charts": {
            "accuracy": accuracy_chart(summary),
            "classes": class_chart(summary),
            "degree": degree_chart(summary),
        },
        "rare": summary.rare,
        "num_rare": 0 if summary.rare is None else int(summary.support[summary.rare]),
        "majority": {key: value for key, _, value in summary.references}.get("majority"),
    }
    if record is not None:
        meta |= explorer_meta(summary, record)
    return meta, base64.b64encode(packed).decode("ascii")


def _example(record: VoteRecord | None, num_detailed: int) -> int:
    """Returns the target that a page shows first: one with more listed votes than most, or the first one."""
    if record is None or not num_detailed:
        return 0
    listed = np.diff(record.votes.indptr[: num_detailed + 1])
    return int(np.argsort(listed, kind="stable")[int(0.8 * num_detailed)])


def page_script() -> str:
    """All scripts of the page in one, the charting library first."""
    library = (_HERE / "vendor" / "plot.min.js").read_text("utf-8")
    own = "\n".join(own_scripts(*_SCRIPTS))
    return f'{library}\n(() => {{\n"use strict";\n{own}}})();\n'


def fill_page(template: Path, values: dict[str, Any], *, script: str, style: str = "", policy: str = "") -> str:
    """A page that needs no other file; ``style`` and ``policy`` are added to what all our pages have.

    Values are escaped, and a name of the template without a value is an error.
    """
    page: str = _template(template).render(
        **values,
        version=agnncert.__version__,
        policy=content_policy(script) + policy,
        fonts=Markup(font_faces()),
        style=Markup((_HERE / "assets" / "style.css").read_text("utf-8") + style),
        script=Markup(script),
    )
    return page


@cache
def _template(file: Path) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(file.parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.get_template(file.name)


def own_scripts(*names: str) -> list[str]:
    """The text of some of the page's own scripts."""
    return [(_HERE / "assets" / f"{name}.js").read_text("utf-8") for name in names]


def font_faces() -> str:
    """The fonts of all our pages, as CSS that needs no other file."""
    files = {family: base64.b64encode((_HERE / "vendor" / file).read_bytes()) for family, file in _FONTS.items()}
    return "".join(
        f'@font-face{{font-family:"{family}";font-weight:200 900;font-display:swap;'
        f'src:url("data:font/woff2;base64,{data.decode("ascii")}") format("woff2")}}\n'
        for family, data in files.items()
    )


def content_policy(script: str) -> str:
    """The content security policy: nothing is loaded and no script runs but ours, even if an escape was forgotten."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def json_for_html(value: Any) -> str:
    r"""JSON that stays inside its script element, whatever strings it holds.

    Example:
        >>> json_for_html("</script>")
        '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def controls(task: str, unit: AttackUnit | None = None) -> list[dict[str, Any]]:
    """The explorer's controls in groups; ``unit`` may rename fields. Only the node task has target features."""
    groups = {"Edges": _EDGES, "Nodes": _NODES, "Features": (("change_features", _FEATURES[task]),)}
    names = {} if unit is None else unit.labels
    listed: list[dict[str, Any]] = [
        {
            "title": title,
            "controls": [{"field": f, "label": names.get(f, label), "kind": "count"} for f, label in fields],
        }
        for title, fields in groups.items()
    ]
    if task == "node":
        own = {"field": "target_features", "label": "The target’s own features may change too", "kind": "switch"}
        listed[-1]["controls"].append(own)
    return listed


def explorer_meta(summary: Summary, record: VoteRecord) -> dict[str, Any]:
    """What the page's scripts need to know about the rule and its words.

    ``absent`` is the class that empty groups vote for where there is one group per neighbour, else -1.
    """
    facts = THEOREMS[record.theorem]
    unit = summary.context.unit
    voting_rule = record.voting_rule
    absent = -1
    if facts.per_neighbour and voting_rule.constant is not None:
        absent = voting_rule.constant
    presets = _presets(record) if unit is None else unit.presets
    rows = () if unit is None else unit.rows
    return {
        "theorem": record.theorem,
        "by_neighbours": facts.by_neighbours,
        "own_features": facts.target_features,
        "stable_ids": record.ids == "node_id" or facts.per_neighbour,
        "per_neighbour": facts.per_neighbour,
        "one_way": facts.one_way,
        "voting_rule": {
            "class_prior": list(voting_rule.class_prior),
            "no_edge_prior": voting_rule.no_edge_prior,
            "absent": absent,
        },
        "parameters": dict(record.parameters),
        "num_groups": record.votes.num_groups,
        "slider_max": _slider_max(summary),
        "presets": [_preset("No attack"), *presets],
        "withstood": [*rows, *_withstood(record)],
        **target_words(record),
    }


def _slider_max(summary: Summary) -> dict[str, int]:
    """Largest values of the sliders: a little more than the largest amount that any target is certified against."""
    top = max(10, int(1.1 * summary.largest_radius) + 1)
    fields = ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features")
    return dict.fromkeys(fields, top) | {"edges_per_injected": min(top, 50)}


def _preset(name: str, unlimited: list[str] | None = None, **budget: int | bool) -> dict[str, Any]:
    return {"name": name, "budget": budget, "unlimited": unlimited or []}


def _presets(record: VoteRecord) -> list[dict[str, Any]]:
    """A few budgets to start from, all of which the rule covers."""
    facts = THEOREMS[record.theorem]
    kinds = division_words(record.theorem).presets
    presets = []
    if "edges" in kinds:
        presets.append(_preset("Three new edges", add_edges=3))
    if facts.division.whole_graph:
        newcomers = "fake accounts" if facts.task == "node" else "new nodes"
        presets.append(_preset(f"Three {newcomers}, any edges", ["edges_per_injected"], inject_nodes=3))
        if facts.by_neighbours:
            others = _all_but_additions(record)
            presets.append(_preset("Anything but new neighbours", others))
            presets.append(_preset("Three new neighbours and anything else", others, add_edges=3))
        else:
            presets.append(_preset("All edges", ["add_edges", "delete_edges", "change_edges"]))
    if "features" in kinds:
        presets.append(_preset("Three nodes’ features", change_features=3))
    if facts.target_features:
        presets.append(_preset("Its own features", target_features=True))
    return presets


def _all_but_additions(record: VoteRecord) -> list[str]:
    """Fields of a budget that bring a target no new neighbour; nodes can be deleted only where ids tell them apart."""
    deletions = ["delete_nodes"] if record.ids == "node_id" else []
    return ["delete_edges", "change_edges", "change_features", *deletions]


def _withstood(record: VoteRecord) -> list[dict[str, Any]]:
    """Rows of the table of one target: how much of one field of the budget it is certified against."""
    facts = THEOREMS[record.theorem]
    rows: list[tuple[str, str, list[str]]] = [
        ("Edges added", "add_edges", []),
        ("Edges deleted", "delete_edges", []),
        ("Nodes injected, with any number of edges", "inject_nodes", ["edges_per_injected"]),
        ("Nodes deleted", "delete_nodes", []),
        (_FEATURES[facts.task], "change_features", []),
    ]
    if facts.task == "node":
        rows.append(("Its own features change", "target_features", []))
    if facts.by_neighbours:
        rows.append(("New neighbours, and everything else without limit", "add_edges", _all_but_additions(record)))
    return [{"name": name, "field": field, "unlimited": unlimited} for name, field, unlimited in rows]


def radius_sentence(summary: Summary) -> str:
    """What the radius of one target means; the page inserts the number."""
    sentence = f"Its label is certified against every attack up to size {{radius}} ({summary.words.step.many})."
    if summary.structure is None:
        return sentence
    return f"{sentence} If edges and nodes are only added and deleted, and no values change: up to {{structure}}."


def points(curve: Shares) -> list[dict[str, float]]:
    """The points of a curve, as the charting library reads them."""
    return [{"x": round(float(x), 6), "y": round(float(y), 6)} for x, y in zip(curve.size, curve.share, strict=True)]


def accuracy_chart(summary: Summary) -> dict[str, Any]:
    """Certified accuracy over the size of the attack, with what it should be compared with."""
    curve, added, structure = summary.certified, summary.certified_additions, summary.certified_structure
    stride = math.ceil(len(curve.size) / MOST_HOVERED)
    hovered = Shares(curve.size[::stride], curve.share[::stride])
    word = text.share_word(summary)
    return {
        "certified": points(changes_only(curve)),
        "every_size": points(hovered),
        "neighbours": [] if added is None else points(changes_only(added)),
        "neighbours_word": f"the same, counting {text.added_words(summary)}",
        "structure": [] if structure is None else points(changes_only(structure)),
        "structure_word": f"the same, counting {text.STRUCTURE_WORDS}",
        "attacked": [{"x": float(x), "y": float(y)} for x, y in sorted(summary.context.attacked)],
        "size_only": [{"x": float(x), "y": float(y)} for x, y in _size_only(summary)],
        "size_only_word": SIZE_ONLY_WORD,
        "possible": [
            {"key": ("reference", "ceiling")[up], "name": name, "points": [{"x": x, "y": y} for x, y in shares.items()]}
            for name, up, shares in summary.possible[:1]
        ],
        "references": [
            {"key": "bag" if key == "bag_of_nodes" else key, "name": name, "value": value}
            for key, name, value in summary.references
        ],
        "max_size": summary.last_size,
        "x_label": f"size of the attack ({summary.words.step.many})",
        "size_word": "size",
        "y_word": word,
        "summary": _spoken(word, curve, [0, summary.last_size // 2, summary.last_size], "size"),
    }


def class_chart(summary: Summary) -> dict[str, Any] | None:
    """Certified recall of each class over the size of the attack, the rarest classes first; None without a truth."""
    curves = dict(list(summary.recalls.items())[:MOST_CURVES])
    if not curves:
        return None
    names = {k: text.class_word(summary, k) for k in curves}
    last = min(summary.last_size, int(summary.certificate.radius.max(initial=0)) + 1)
    return {
        "curves": [
            {"name": names[k], "points": points(changes_only(Shares(curve.size[: last + 1], curve.share[: last + 1])))}
            for k, curve in curves.items()
        ],
        "max_size": last,
        "x_label": f"size of the attack ({summary.words.step.many})",
        "summary": " ".join(_spoken(f"recall of {names[k]}", c, [0, last // 2], "size") for k, c in curves.items()),
    }


def budget_table(summary: Summary) -> dict[str, Any]:
    """Returns shares under some budgets of one kind of change each, for a page without an explorer.

    It is empty if there is an explorer, or no target.
    """
    if summary.votes is not None or not summary.num_judged:
        return {}
    task = summary.certificate.claim.task
    rows = []
    for name, field, rest in (*_SINGLE_CHANGES, (_FEATURES[task], "change_features", Budget())):
        shares = [_share_under(summary, rest.but(**{field: amount})) for amount in _AMOUNTS]
        rows.append([name, *shares])
    if task == "node":
        rows.append(["Its own features change", _share_under(summary, Budget(target_features=True)), "–", "–"])
    return {"titles": ["If the attacker does only this", *map(whole, _AMOUNTS)], "rows": rows}


def _share_under(summary: Summary, budget: Budget) -> str:
    """Returns the certified accuracy (or share) under a budget, rounded down."""
    kept = summary.certificate.holds_against(budget) & summary.counted & summary.judged
    return text.percent(float(kept.sum() / summary.num_judged), -1)


def unit_table(summary: Summary) -> dict[str, Any]:
    """Shares at a few numbers of edits in the context's unit; empty if there is none."""
    unit, curves = summary.context.unit, summary.unit_curves
    if unit is None:
        return {}
    last = max(int(curve.size[-1]) for curve in curves.values())
    # Beyond its end a curve goes on with the targets that are certified against any number.
    rows = [
        [str(size), *(text.percent(curve.at(min(size, curve.size[-1])), -1) for curve in curves.values())]
        for size in UNIT_SIZES
        if size <= last
    ]
    return {"title": unit.title, "text": unit.text, "column": unit.column, "names": list(curves), "rows": rows}


def accuracy_table(summary: Summary) -> dict[str, Any]:
    """The table of :func:`accuracy_chart`, at about a dozen sizes."""
    curve, added = summary.certified, summary.certified_additions
    attacked = {float(x): float(y) for x, y in summary.context.attacked}
    sizes = sorted({*_round_sizes(summary.last_size), *(int(x) for x in attacked if x == int(x))})
    others = [("added or deleted only", summary.certified_structure), (text.added_words(summary).split(",")[0], added)]
    columns = [("certified", curve), *((word, c) for word, c in others if c is not None)]
    measured = {"under attack": attacked, SIZE_ONLY_WORD: dict(_size_only(summary))}
    shown = {name: values for name, values in measured.items() if values}
    rows = [
        [
            f"{size:,}",
            *(text.percent(c.at(size), -1) for _, c in columns),
            *(text.percent(values[size]) if size in values else "–" for values in shown.values()),
            *(text.percent(values[size], up) if size in values else "–" for _, up, values in summary.possible),
            *(text.percent(value) for _, _, value in summary.references),
        ]
        for size in sizes
    ]
    names = [*dict(columns), *shown, *(one[0] for one in summary.possible), *(one[1] for one in summary.references)]
    return {"names": names, "rows": rows}


def _size_only(summary: Summary) -> list[tuple[float, float]]:
    """What the size alone certifies, as far as the curves reach."""
    return [(float(size), share) for size, share in sorted(summary.context.size_only) if size <= summary.last_size]


def degree_chart(summary: Summary) -> dict[str, Any] | None:
    """Certified accuracy over size divided by degree, on a logarithmic axis; None if degrees are unknown."""
    curve = summary.certified_over_degree
    if curve is None or len(curve.size) < 2:
        return None
    low = min(0.1, 10.0 ** math.floor(math.log10(curve.size[1])))
    high = _round_up(max(2.0, 1.05 * float(curve.size[-1])))
    inner = (curve.size > low) & (curve.size <= high)
    x = np.concatenate([[low], curve.size[inner], [high]])
    y = np.concatenate([[curve.at(low)], curve.share[inner], [curve.at(high)]])
    ticks = [10.0**e for e in range(round(math.log10(low)), math.floor(math.log10(high)) + 1)]
    edges = "degree" if summary.certificate.claim.task == "node" else "number of edges"
    return {
        "points": points(Shares(x, y)),
        "domain": [low, high],
        "ticks": ticks,
        "x_label": f"size of the attack ÷ {edges} of the target (logarithmic)",
        "ratio_word": f"size ÷ {edges}",
        "y_word": text.share_word(summary),
        "ceiling": CEILING if summary.certificate.claim.task == "node" and summary.words.step.deletes_edge else "",
        "summary": _spoken(text.share_word(summary), curve, [0.5, 1, 2], f"size ÷ {edges}"),
    }


def degree_table(summary: Summary) -> list[list[str]]:
    """Rows of the table of :func:`degree_chart`."""
    curve, sizes = summary.certified_over_degree, (0.1, 0.25, 0.5, 1, 2, 5, 10, 50)
    return [] if curve is None else [[f"{x:g}", text.percent(curve.at(x), -1)] for x in sizes]


def _spoken(word: str, curve: Shares, sizes: list[float], unit: str) -> str:
    """The chart in words, for screen readers."""
    return f"{word}: " + ", ".join(f"{text.percent(curve.at(x), -1)} at {unit} {x:g}" for x in sizes) + "."


def _round_up(value: float) -> float:
    scale = 10.0 ** math.floor(math.log10(value))
    return next(m * scale for m in (1, 2, 5, 10) if m * scale >= value)


def _round_sizes(last: int) -> list[int]:
    """About a dozen round sizes from 0 to ``last``."""
    return list(range(0, last + 1, int(_round_up(max(1, last / TABLE_ROWS)))))


def pack(arrays: dict[str, Array]) -> tuple[list[dict[str, Any]], bytes]:
    """Compresses arrays into one block, each in the smallest type that holds its values, and lists their offsets."""
    places, block = [], bytearray()
    for name, array in arrays.items():
        small = _smallest(array)
        block.extend(bytes(-len(block) % ALIGNMENT))
        places.append({"name": name, "type": str(small.dtype), "offset": len(block), "length": small.size})
        block.extend(small.astype(small.dtype.newbyteorder("<")).tobytes())
    return places, gzip.compress(bytes(block), compresslevel=COMPRESSION, mtime=0)


def _smallest(array: Array) -> Array:
    if array.dtype == np.float64:
        return array
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return array.astype(dtype)
    return array.astype(np.int32 if low >= -(2**31) and high < 2**31 else np.float64)


def target_arrays(summary: Summary) -> dict[str, Array]:
    """One entry for each target: id, label, truth, radius, votes."""
    certificate = summary.certificate
    ids = json.dumps([str(target) for target in certificate.target.tolist()], ensure_ascii=False).encode()
    arrays: dict[str, Array] = {
        "ids": np.frombuffer(ids, dtype=np.uint8),
        "label": certificate.label,
        "radius": np.minimum(certificate.radius, ANY),
        "counts": certificate.counts.ravel(),
    }
    known = {"truth": summary.truth, "degree": summary.degree, "structure": summary.structure}
    arrays |= {name: np.minimum(array, ANY) for name, array in known.items() if array is not None}
    if summary.added is not None:
        arrays["neighbours"] = np.where(summary.added >= LARGEST_AMOUNT, ANY, summary.added).astype(np.int64)
    return arrays


def count_arrays(summary: Summary) -> dict[str, Array]:
    """What the explorer counts: stable votes by tier, how far nodes reach, and what a prior follows."""
    record = summary.votes
    if record is None:
        return {}
    votes = record.votes
    counted = count_votes(votes)
    reached, unreached, _ = counted.votes
    arrays: dict[str, Array] = {
        "default": votes.default,
        "default_stable": votes.default_stable,
        "num_reached": np.bincount(votes.owner[votes.reached], minlength=votes.num_targets),
        "size": counted.size.ravel(),
        "votes_reached": reached.ravel(),
        "reach_len": np.diff(record.reach_ptr),
        "reach": record.reach,
    }
    if unreached.any():
        arrays["votes_unreached"] = unreached.ravel()
    if record.one_way is not None:
        one_way = votes.stable & record.one_way
        arrays["one_way_votes"] = votes.count_by_class(one_way, np.zeros(votes.num_targets, dtype=bool)).ravel()
        arrays["one_way_size"] = np.bincount(votes.owner[one_way], minlength=votes.num_targets)
    known = {name: getattr(record, name) for name in ("no_edge", "no_edge_stable", "targets_per_node")}
    return arrays | {name: array for name, array in known.items() if array is not None}


def vote_arrays(record: VoteRecord, num_targets: int) -> dict[str, Array]:
    """Every listed vote of the first ``num_targets`` targets; groups as steps from one to the next."""
    votes = record.votes
    one_way = np.zeros(len(votes.vote), dtype=bool) if record.one_way is None else record.one_way
    last = votes.indptr[num_targets]
    group = votes.group[:last].astype(np.int64)
    starts = votes.indptr[:num_targets][np.diff(votes.indptr[: num_targets + 1]) > 0]
    step = np.diff(group, prepend=-1)
    step[starts] = group[starts] + 1
    return {
        "listed_len": np.diff(votes.indptr[: num_targets + 1]),
        "group_step": step,
        "vote": votes.vote[:last],
        "flags": votes.stable[:last].astype(np.int64) + 2 * votes.reached[:last] + 4 * one_way[:last],
    }


def num_detailed(record: VoteRecord, limit: int = DETAIL_BYTES) -> int:
    """How many targets' single votes fit into ``limit`` compressed bytes, from the first target on."""
    count = record.num_targets
    while count and (size := len(pack(vote_arrays(record, count))[1])) > limit:
        count = min(int(count * 0.97 * limit / size), count - 1)
    return count
