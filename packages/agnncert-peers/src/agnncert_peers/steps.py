"""What ``agnncert compare`` does: defences on one dataset, with a folder of results; or finished runs side by side."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agnncert.cli.controls_step import BEST_WITH_GRAPH, BEST_WITHOUT_GRAPH, CERTIFIED_MEASURE
from agnncert.cli.data import class_names, file_name, load_data, trusted_column
from agnncert.cli.defences import defence_class, with_usual_split
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.models import fresh_model
from agnncert.cli.settings import ModelSettings, fit_arguments_of, numbers, pairs
from agnncert.cli.user_code import is_module_spec
from agnncert.controls.stored import read_scores
from agnncert.defence import Task
from agnncert.errors import SettingsError
from agnncert.graphs.task import infer_task
from agnncert.progress import OnProgress
from agnncert.training.settings import checked
from agnncert_peers.compared import compare
from agnncert_peers.comparison import Comparison, join_seeds
from agnncert_peers.defences import defence_named
from agnncert_peers.threat import Threat

SIZES = (0, 1, 5, 10, 20, 50, 100)
# The best controls of a run at the operating point of its certified model, and the certified model itself.
_CONTROLS = {
    "certified, at its point": CERTIFIED_MEASURE,
    "best without a graph": BEST_WITHOUT_GRAPH,
    "best with the graph, no proof": BEST_WITH_GRAPH,
}
_ACCURACIES = {
    "vote": "accuracy of the vote",
    "undefended": "accuracy, undefended",
    "no edges": "accuracy, no edges",
    "majority": "accuracy, majority class",
}


@dataclass(frozen=True)
class CompareSettings(ModelSettings):
    """What to compare."""

    fit: Mapping[str, Any] = field(default_factory=dict)  # as in TrainSettings, for all defences
    defence: tuple[str, ...] = ()  # defences with their settings; by default all that cover the attack
    against: str = "edges"  # or "injection", "features", "edges and features"
    sizes: str = ""  # attack sizes to show, such as "0,5,20"
    size: str = ""  # perturbation sizes for which voting rules are chosen; one row for each
    seeds: str = ""  # several seeds, such as "0,1,2", instead of one: means and deviations are shown
    edges_per_injected: float | str = math.inf
    own_features: bool = False  # whether the attack also changes the features of its target
    references: bool = True  # whether to show an undefended model and a model without edges
    scores: str | None = None  # a table with scores of the user's own, one more control for each column
    false_positive_rate: float | None = None  # two classes: at which all are compared; else that of the first defence
    samples: int = 10_000  # of randomised defences: samples that bound probabilities, ...
    selection: int = 100  # ... samples that choose labels, ...
    alpha: float = 0.01  # ... and the probability of error

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("division", "groups", "hash", "weights"):
            if name in self.set:
                raise SettingsError(f"compare has no setting {name}: name divisions as --defence node:num_groups=100.")
        if self.size and self.sets_rule:
            raise SettingsError("--size chooses the voting rule: leave out --empty and --prior.")
        Threat(self.against, self.most_edges_per_injected, self.own_features)  # says what is wrong with them
        seeds = numbers("seeds", self.seeds)
        if len(set(seeds)) < len(seeds):
            raise SettingsError(f"--seeds {self.seeds}: the same seed twice gives the same numbers twice.")
        checked(self.fit_arguments(), "node")

    @property
    def most_edges_per_injected(self) -> float:
        """The most edges of an injected node, as a number."""
        return math.inf if self.edges_per_injected == "inf" else float(self.edges_per_injected)

    def fit_arguments(self) -> dict[str, Any]:
        """The arguments of ``agnncert.fit`` that are set."""
        return fit_arguments_of(self.fit)


@dataclass(frozen=True)
class Compared:
    """A comparison, the folder with its certificates, and the files of its tables and figures."""

    folder: Path
    comparison: Comparison
    files: tuple[Path, ...]


def compare_run(
    settings: CompareSettings, out: str | Path | None = None, on_progress: OnProgress | None = None
) -> Compared:
    """Trains and certifies with every defence and writes tables and figures.

    After an interruption the same call continues where it stopped. Another attack on the same folder uses the
    certificates that are there.

    Args:
        settings: What to compare.
        out: The folder. Defaults to one below ``runs``.
        on_progress: Called before every defence.
    """
    seeds = numbers("seeds", settings.seeds) or (settings.seed,)
    runs = []
    folder = None if out is None else Path(out)
    for seed in seeds:
        names = [text.partition(":")[0] for text in settings.defence]
        seeded = with_usual_split(replace(settings, seed=seed), names)
        data = load_data(seeded)  # the seed also draws the split of a named dataset
        folder = folder or _usual_folder(settings, data)
        runs.append(_compare(seeded, data, folder, on_progress))
    assert folder is not None
    comparison = join_seeds(runs)
    files = comparison.save(folder, _name_of_files(comparison.threat))
    return Compared(folder, comparison, files)


def _compare(settings: CompareSettings, data: Any, folder: Path, on_progress: OnProgress | None) -> Comparison:
    """Compares with one seed."""
    task = infer_task(data)
    name = settings.model or "gcn"
    model: dict[str, Any] = {"model": name, "model_args": settings.set}
    if is_module_spec(name):
        model = {"model": lambda: fresh_model(settings, data), "model_args": {}}
    marks = {} if settings.trusted is None else {"trusted": trusted_column(data)}
    return compare(
        data,
        [_defence(text, task, marks) for text in settings.defence] or None,
        against=settings.against,
        sizes=numbers("sizes", settings.sizes) or None,
        voting_rule=settings.voting_rule(class_names(data)),
        size=numbers("size", settings.size) or None,
        edges_per_injected=settings.most_edges_per_injected,
        own_features=settings.own_features,
        fit=settings.fit_arguments(),
        references=settings.references,
        scores=None if settings.scores is None else read_scores(Path(settings.scores)),
        false_positive_rate=settings.false_positive_rate,
        sampling={"selection": settings.selection, "samples": settings.samples, "alpha": settings.alpha},
        seed=settings.seed,
        folder=folder / "certificates",
        progress=on_progress,
        **model,
    )


def _usual_folder(settings: CompareSettings, data: Any) -> Path:
    """Returns where to write if nobody says where."""
    data_name = getattr(data, "name", None) or Path(settings.data).name
    return Path("runs") / file_name(f"{data_name}-{settings.model or 'gcn'}-comparison")


def _name_of_files(threat: Threat) -> str:
    name = threat.kind
    if threat.kind == "injection":
        name += f"-{threat.edges_per_injected:g}"
    if threat.own_features:
        name += "-own"
    return file_name(name)


def _defence(text: str, task: Task, marks: dict[str, Any]) -> Any:
    """Returns a defence from its name and settings, such as ``bi-rs:p_edge=0.7,p_node=0.9``.

    Args:
        text: The name and the settings.
        task: "node" or "graph".
        marks: Which edges are trusted, for defences that have such a setting.
    """
    name, _, rest = text.partition(":")
    settings = pairs("defence", [word for word in rest.split(",") if word])
    known = defence_class(name).setting_names(name)
    shared = {key: value for key, value in marks.items() if key in known}
    return defence_named(name, task, {**shared, **settings})


def side_by_side(places: Sequence[str | Path]) -> tuple[list[str], list[list[Any]]]:
    """A table of runs: its titles, and a row for each. Certified accuracies are those at the usual sizes.

    Raises:
        SettingsError: A place is not the folder of a run.
    """
    folders = []
    for place in places:
        folder = find_run(place) if Path(place).is_dir() else None
        if folder is None:
            raise SettingsError(f"{place} is not the folder of a run: it has no settings.toml.")
        folders.append(folder)
    tables = [_numbers(folder) for folder in folders]
    sizes = [size for size in SIZES if any(f"at {size}" in table for table in tables)]
    titles = [
        "data",
        "model",
        "division",
        "seed",
        *_ACCURACIES,
        *_CONTROLS,
        *(f"at {s}" for s in sizes),
        "median radius",
    ]
    shown = [title for title in titles if any(title in table for table in tables)]
    rows = [[str(f), *(t.get(name, "") for name in shown)] for f, t in zip(folders, tables, strict=True)]
    return ["run", *shown], rows


def _numbers(folder: RunFolder) -> dict[str, Any]:
    rows = folder.rows()
    if not rows:
        raise SettingsError(f"{folder} has no results yet: run its command again to finish it.")
    numbers: dict[str, Any] = {name: rows[-1][name] for name in ("data", "model", "division", "seed")}
    numbers["division"] = str(numbers["division"]).replace(", key=u64le", "").replace(", hash=md5", "")
    single = {row["measure"]: row["value"] for row in rows if row["size"] is None}
    numbers |= {name: round(single[m], 4) for name, m in (_ACCURACIES | _CONTROLS).items() if m in single}
    numbers |= {"median radius": single["median radius"]} if "median radius" in single else {}
    for row in rows:
        if row["measure"] in ("certified accuracy", "certified share") and row["size"] in SIZES:
            numbers[f"at {row['size']}"] = round(row["value"], 4)
    if any(title.startswith("at ") for title in numbers):  # sizes beyond the last one stored: nothing is certified
        numbers = {**{f"at {size}": 0.0 for size in SIZES if f"at {size}" not in numbers}, **numbers}
    return numbers
