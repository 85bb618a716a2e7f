"""The step that replays the past: ``backtest_run`` trains and certifies month after month."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from agnncert.backtesting import Backtest, backtest
from agnncert.cli.column_drift import Drifted, drift_of_events
from agnncert.cli.data import has_events, load_as_of
from agnncert.cli.defences import make_defence, with_usual_for_events
from agnncert.cli.settings import TrainSettings
from agnncert.cli.tables_of import table_file
from agnncert.datasets.columns import read_table
from agnncert.datasets.drawn_splits import BY_ID
from agnncert.errors import SettingsError
from agnncert.fitting import fit
from agnncert.models.build import build_model
from agnncert.progress import OnProgress
from agnncert.study import WITHOUT_MODEL


@dataclass(frozen=True)
class Replayed:
    """What ``backtest_run`` returns.

    Attributes:
        found: What the models did, period by period.
        drift: How the columns of the events differ between the first training and each later period.
    """

    found: Backtest
    drift: Mapping[str, tuple[Drifted, ...]]

    def __str__(self) -> str:
        lines = [str(self.found)]
        for to, columns in self.drift.items():
            for each in columns:
                if each.is_noticed:
                    lines.append(
                        f"Column {each.column} at {to}: {100 * each.missing_before:.1f} % missing in training, "
                        f"{100 * each.missing_now:.1f} % now; distance {each.distance:.2f}"
                    )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        drift = {to: [asdict(each) for each in columns] for to, columns in self.drift.items()}
        return {**self.found.to_json(), "drift": drift}


def backtest_run(
    settings: TrainSettings,
    times: Sequence[str],
    *,
    false_positive_rate: float,
    confidence: float | None = None,
    size: float = 1,
    delay: float = 0,
    typology: str | None = None,
    on_progress: OnProgress | None = None,
) -> Replayed:
    """Replays the past on a table of events.

    Args:
        settings: What to train, as for ``agnncert train``: data, columns, defence, ``keep`` and ``keep_for``.
        times: At least two times, in order.
        false_positive_rate: What the threshold is chosen for.
        confidence: With which probability the rate is to be guaranteed; ``None`` for an estimate.
        size: The size of attacks for which recall is certified.
        delay: Days by which labels are used later than the column of label times says.
        typology: Column of the table of nodes that names the kind of each positive account.
        on_progress: Called while events are read.

    Raises:
        SettingsError: The data is no table of events with times, or settings make no sense.
    """
    if not has_events(settings) or "event_time" not in settings.column:
        raise SettingsError(
            "a backtest needs a table of events with times: name its column, --set column.event_time=NAME."
        )
    if settings.as_of or settings.cut_off:
        raise SettingsError("as_of and cut_off follow from --times here: leave them out.")
    if settings.split_by not in (None, BY_ID):
        raise SettingsError("a backtest draws its split by ids, so that accounts stay in their parts over time.")
    plain = replace(settings, split_by=BY_ID, keep=None, keep_for=None)
    kinds = None if typology is None else _typology(settings, typology)
    positive = settings.keep_for
    found = backtest(
        _Loader(plain, on_progress),
        times,
        lambda data: _train(plain, data),
        false_positive_rate=false_positive_rate,
        confidence=confidence,
        keep=settings.keep,
        positive=int(positive) if positive is not None and positive.isdecimal() else positive,
        size=size,
        delay=delay,
        typology=kinds,
    )
    return Replayed(found, drift_of_events(settings, [str(time) for time in times], on_progress))


@dataclass(frozen=True)
class _Loader:
    """Loads the graph as of a time, as settings say."""

    settings: TrainSettings
    on_progress: OnProgress | None

    def __call__(self, as_of: str | None, encode: Any = None) -> Any:
        return load_as_of(self.settings, as_of, encode, self.on_progress)


def _train(settings: TrainSettings, data: Any) -> tuple[Any, Any]:
    """Trains the model that settings name on a graph. Returns it and its defence."""
    settings = with_usual_for_events(settings, data)
    complete, defence = make_defence(settings, "node", data)
    arguments = {"balance_classes": True, **complete.fit_arguments()}
    name = complete.model or "gcn"
    model: Any = None if name == WITHOUT_MODEL else name
    if model is not None and complete.set:
        model = build_model(name, data, seed=complete.seed, **complete.set)
    trained = fit(model, data, defence, **arguments)
    return trained, getattr(trained, "defence", defence)


def _typology(settings: TrainSettings, column: str) -> dict[str, str]:
    """Returns the kind of each account, by its id."""
    id = str(settings.column.get("id", "id"))
    table = read_table(table_file(settings, "nodes"), [id, column])
    table.require(column)
    return {str(name): kind for name, kind in zip(table.ids(id), table.text(column), strict=True) if kind}
