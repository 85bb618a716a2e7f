"""The commands, one function per verb, in the order of ``agnncert --help``; ``app`` is the typer application with them.

A command turns its options into settings, calls one function and prints the result. Heavy packages are imported inside
the commands, so that ``--help``, ``verify FILE`` and ``show FILE`` need no torch.
"""

import math
import shlex
import time
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from agnncert import __version__
from agnncert.addons import addons
from agnncert.certificates.theorem_facts import division_words
from agnncert.cli import options
from agnncert.cli.screen import Screen, percent, table
from agnncert.cli.settings import CertifySettings, DefenceSettings, TrainSettings, read_settings
from agnncert.errors import SettingsError

CertificateFile = Annotated[Path, typer.Argument(help="A certificate, or the run folder that holds one.")]

app = typer.Typer(
    name="agnncert", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        print(f"agnncert {__version__}")
        raise typer.Exit


@app.callback()
def agnncert(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """Certified robustness for graph neural networks.

    Start with: agnncert demo
    """


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Run folder. A run in it is replaced.", metavar="FOLDER")] = Path(
        "runs/demo"
    ),
    json: options.Json = False,
) -> None:
    """Find fraud among generated accounts, and prove how much of it stays detected, in about a minute.

    Trains, certifies, attacks, verifies and reports. Needs no network. Ends with a page to open in a browser.
    """
    from agnncert.cli.attack_step import AttackSettings, attack_run
    from agnncert.cli.certify_step import certify_run
    from agnncert.cli.report_step import report_run
    from agnncert.cli.train_step import train_run
    from agnncert.cli.verify_step import verify_named

    begin, screen = time.perf_counter(), Screen(json)
    with screen.following() as on_progress:
        screen.say("[1/5] Train on 5,000 generated accounts, joined by payments; 3 % of them are fraud")
        training = TrainSettings(
            data="accounts-generated", model="sage", division="per-neighbour", prior="genuine=1",
            set={"num_layers": 1, "dropout": 0.0, "hidden_channels": 16},
            fit={"epochs": 30, "lr": 0.05, "weight_decay": 5e-4, "balance_classes": True, "evaluate_every": 10},
        )  # fmt: skip
        folder = train_run(training, out, fresh=True, on_progress=on_progress).folder
        screen.say("[2/5] Let the neighbours of each test account vote on it, and prove what no attack can change")
        certify_run(CertifySettings(data=str(folder.path)), report=False, on_progress=on_progress)
        screen.say("[3/5] Attack the votes with full knowledge of model and division")
        attacked = attack_run(folder.path, AttackSettings(sizes="3,12", sample="16"))
        screen.say("[4/5] Verify the certificate from its file, and recompute 200 predictions one by one")
        verdict = verify_named(folder.certificate, DefenceSettings(), 200)
        screen.say("[5/5] Write the report")
        reported = report_run(folder.path)
    seconds, violations = time.perf_counter() - begin, attacked.violations
    certified, others, fallen = (
        sum(getattr(each, name) for each in attacked.rounds)
        for name in ("attacked_certified", "attacked_others", "fallen_others")
    )
    lines = [
        f"\nAttacked within the proof: {violations} of {certified} labels changed. Beyond it: {fallen} of {others}.",
        str(verdict).splitlines()[0],
        f"Done in {seconds:.0f} s. Open {reported.page} in a browser.\n",
        reported.text,
        "\nThe accounts are generated: this shows what a certificate says, not how well fraud can be found.",
    ]
    outcome = {
        "run": folder, "report": reported.page, "sentences": reported.sentences, "classes": reported.classes,
        "holds": verdict.holds,
        "violations": violations, "seconds": round(seconds, 1), "results": folder.rows(),
    }  # fmt: skip
    screen.result(outcome, "\n".join(lines))
    raise typer.Exit(0 if verdict.holds and not violations else 1)


@app.command()
def datasets(root: options.Root = None, json: options.Json = False) -> None:
    """List the datasets and whether their files are present.

    Missing files are downloaded when a dataset is first used. Without a network, put them where the error message of
    that first use says; digits-knn, digits-grid, accounts-generated and circles-generated need none.
    """
    from agnncert.datasets.catalog import DATASETS, SOURCES, default_root

    place = Path(root) if root is not None else default_root()
    missing = {name: source.missing(place) for name, source in SOURCES.items()}
    here = {name: "built in" if name not in missing else "no" if missing[name] else "yes" for name in DATASETS}
    rows = [{**asdict(info), "here": here[name], "missing": missing.get(name, [])} for name, info in DATASETS.items()]
    titles = ["name", "task", "size", "edges", "classes", "features", "here", "about"]
    text = table(titles, [[row[title] for title in titles] for row in rows])
    Screen(json).result({"root": place, "datasets": rows}, f"{text}\n\nFolder: {place}")


@app.command()
def train(
    data: Annotated[str | None, typer.Argument(help="A dataset, or a folder with tables.")] = None,
    model: options.Model = None,
    division: options.Division = None,
    groups: options.Groups = None,
    empty: options.Empty = None,
    prior: options.Prior = None,
    trusted: options.Trusted = None,
    size: Annotated[
        int | None,
        typer.Option(metavar="M", help="Keep the weights with the best certified accuracy at this perturbation size."),
    ] = None,
    teach: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", show_default="none",
            help="For few labels: first label the training graph by a teacher that reads edges, such as gcn.",
        ),
    ] = None,
    epochs: options.Epochs = None,
    references: options.References = None,
    seed: options.Seed = None,
    root: options.Root = None,
    set_: options.Set = None,
    settings: options.SettingsFile = None,
    out: options.Out = None,
    fresh: options.Fresh = False,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Train a model on the graph and its subgraphs, so that their votes agree.

    Writes a run folder with the weights; certify it with agnncert certify FOLDER. An interrupted command continues
    where it stopped when you run it again.
    """
    wanted = read_settings(
        TrainSettings, "train", settings, set_ or (), data=data, model=model, division=division, groups=groups,
        empty=empty, prior=prior, trusted=trusted, size=size, teach=teach, epochs=epochs, references=references,
        seed=seed, root=root,
    )  # fmt: skip
    from agnncert.cli.train_step import train_run

    screen = Screen(json)
    with screen.following() as on_progress:
        trained = train_run(wanted, out, fresh, on_progress)
    lines = [
        f"  {name}: {percent(value) if 'accuracy' in name else f'{value:g}'}"
        for name, value in trained.measured.items()
        if " of class " not in name
    ]
    own = f" --model {wanted.model}" if ":" in (wanted.model or "") else ""
    following = f"agnncert certify {shlex.quote(str(trained.folder))}{own}{trained.folder.options}"
    text = "\n".join([*lines, f"The model is in {trained.folder}. Next: {following}"])
    screen.result({"run": trained.folder, "settings": trained.settings.table(), **trained.measured}, text)


@app.command()
def certify(
    data: Annotated[
        str | None, typer.Argument(metavar="RUN | DATA", help="A trained run; or a dataset or folder with tables.")
    ] = None,
    model: options.Model = None,
    weights: options.Weights = None,
    division: options.Division = None,
    groups: options.Groups = None,
    empty: options.Empty = None,
    prior: options.Prior = None,
    trusted: options.Trusted = None,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="M", show_default="none",
            help="Choose --prior, --empty and, for graphs, the division for perturbations of this size, on validation.",
        ),
    ] = None,
    false_positive_rate: Annotated[
        float | None,
        typer.Option(metavar="SHARE", show_default="none", help="Choose the threshold for this rate."),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="P", show_default="none",
            help="Guarantee that rate with this confidence, such as 0.95, on targets kept by --set keep=0.5 of train.",
        ),
    ] = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the report too.")] = True,
    scores: options.Scores = None,
    workers: options.WorkersOption = None,
    root: options.Root = None,
    set_: options.Set = None,
    settings: options.SettingsFile = None,
    out: options.Out = None,
    fresh: options.Fresh = False,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Prove how much of the graph an attacker may change without changing the voted labels.

    Takes the run folder of agnncert train, or any model on any graph. Writes the certificate and its report to a run
    folder. An interrupted command continues where it stopped when you run it again.
    """
    wanted = read_settings(
        CertifySettings, "certify", settings, set_ or (), data=data, model=model, weights=weights, division=division,
        groups=groups, empty=empty, prior=prior, trusted=trusted, size=size, root=root,
        false_positive_rate=false_positive_rate, confidence=confidence,
    )  # fmt: skip
    import numpy as np

    from agnncert.cli.certify_step import certify_run

    screen, chosen = Screen(json), options.workers_named(workers)
    with screen.following() as on_progress:
        certified = certify_run(wanted, out, fresh, report, on_progress, chosen, scores=scores)
    certificate, reported = certified.certificate, certified.reported
    outcome = {
        "run": certified.folder, "certificate": certified.folder.certificate, "report": reported.page,
        "targets": certificate.num_targets, "median_radius": float(np.median(certificate.radius)),
        "division": certificate.claim.division,
        "voting_rule": certificate.voting_rule and certificate.voting_rule.to_json(),
        "seconds": round(certified.seconds, 3), "sentences": reported.sentences, "classes": reported.classes,
        "controls": None if reported.controls is None else reported.controls.to_json(),
        "results": certified.folder.rows("certify"),
    }  # fmt: skip
    places = [f"Certificate: {certified.folder.certificate}"]
    places += [f"Report:      {reported.page}"] if reported.page else []
    screen.result(outcome, "\n".join([*places, reported.text]))


@app.command()
def verify(
    file: CertificateFile,
    data: Annotated[
        str | None, typer.Option(help="The data: a run folder, a dataset or a folder with tables.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model: package.module:factory, or a built-in one.")] = None,
    weights: options.Weights = None,
    recheck: Annotated[
        str,
        typer.Option(metavar="N", help="Predictions to recompute, chosen at random, or all. Needs data and model."),
    ] = "0",
    require: Annotated[
        str,
        typer.Option(
            metavar="data,model,date",
            help="What must have been compared, or that the file is within its dates; else the exit status is 3.",
        ),
    ] = "",
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the outcome as JUnit XML too, for a pipeline.")
    ] = None,
    seed: options.Seed = None,
    root: options.Root = None,
    set_: options.Set = None,
    settings: options.SettingsFile = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Check a certificate: the file alone, or together with its data and model.

    From a file alone, only the arithmetic can be checked. A run folder has data and model; otherwise pass --data,
    --model and --weights, which override those of a folder. Code that a folder names is run only if you pass it as
    --model. Exit status: 0 nothing is wrong, 1 something is wrong, 3 nothing is wrong in what was checked, but what
    --require names was not checked.
    """
    from agnncert.verdict import verify as check

    if recheck != "all" and not recheck.isdecimal():
        raise SettingsError(f'--recheck {recheck}: expected a whole number from 0 on, or "all".')
    named = read_settings(
        DefenceSettings, "verify", settings, set_ or (), data=data, model=model, weights=weights, seed=seed, root=root
    )
    required = [name.strip() for name in require.split(",") if name.strip()]
    if not set(required) <= {"data", "model", "date"}:
        raise SettingsError(f"--require {require}: expected some of data, model and date, with commas between them.")
    certificate, amount = _certificate_in(file), math.inf if recheck == "all" else int(recheck)
    screen = Screen(json)
    if not (amount or named.data or named.model or named.weights or _is_run(file)):
        verdict = check(certificate)
    else:
        from agnncert.cli.verify_step import verify_named

        with screen.following() as on_progress:
            verdict = verify_named(certificate, named, amount, on_progress)
    names = ("holds", "reasons", "warnings", "checked", "not_checked", "compared")
    there = {*verdict.compared, *(() if verdict.warnings else ("date",))}
    missing = [_MISSING[name] for name in required if verdict.holds and name not in there]
    lines = [str(verdict), *(f"  {reason}" for reason in missing)]
    if junit is not None:
        from agnncert.cli.handover import write_junit

        write_junit(junit, certificate, verdict, missing)
    screen.result({"file": certificate} | {name: getattr(verdict, name) for name in names}, "\n".join(lines))
    raise typer.Exit(1 if not verdict.holds else 3 if missing else 0)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A contest: a JSON file that anybody may have written.")],
    json: options.Json = False,
) -> None:
    """Check a certificate of any deterministic defence, written in the open format "contest".

    The statements have to follow from the form in the file, with the prices that it states. That the form describes the
    defence is its author's claim. Where a statement fails, a play shows what an attacker does. Exit status: 0 every
    statement follows, 1 one does not, or the file is refused.
    """
    from agnncert.contest.verdict import check_contest

    verdict = check_contest(file)
    names = ("holds", "reasons", "plays", "checked")
    screen = Screen(json)
    screen.result({"file": file} | {name: getattr(verdict, name) for name in names}, str(verdict))
    raise typer.Exit(0 if verdict.holds else 1)


_MISSING = {
    **{name: f"required, but not checked: the {name}" for name in ("data", "model")},
    "date": "required, but not so: that the file is used within its dates",
}


def _is_run(place: Path) -> bool:
    from agnncert.cli.folder import find_run

    return place.is_dir() and find_run(place) is not None


def _certificate_in(place: Path) -> Path:
    return place / "certificate.cert" if place.is_dir() else place


@app.command()
def show(
    file: CertificateFile,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=N", help="Which labels are possible within a budget: add_edges=3. May be repeated."
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=N", help="What a label costs at prices: inject_nodes=20. May be repeated."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Print what a certificate claims and certifies of each class, without checking it: agnncert verify does that."""
    from agnncert.cli.report_step import about_budget, about_prices, report_run
    from agnncert.cli.settings import pairs

    asked = [(about_budget, pairs("budget", budget))] if budget else []
    asked += [(about_prices, pairs("price", price))] if price else []
    if asked:
        answers = [answer(_certificate_in(file), given) for answer, given in asked]
        Screen(json).result({k: v for found, _ in answers for k, v in found.items()}, "\n".join(t for _, t in answers))
        return
    reported = report_run(file, write=False)
    claim = reported.claim
    names = [f"{k} is {name}" for k, name in enumerate(reported.class_names)]
    classes = [f"Classes: {', '.join(names)}."] if names else []
    made_by = division_words(claim.division) or claim.method
    text = "\n".join([f"{made_by}, {claim.guarantee}, {claim.task}s", *classes, str(claim)])
    issued = [f"Issued {name}: {value}" for name, value in reported.issued.items()]
    said = [*reported.sentences[:2], *([f"\n{reported.table}"] if reported.table else [])]
    stated = {
        "excluded": reported.excluded, "issued": reported.issued, "classes": reported.classes,
        "class_names": reported.class_names,
    }  # fmt: skip
    excluded = [f"Excluded, {line}" for line in reported.excluded]
    Screen(json).result({**claim.to_json(), **stated}, "\n".join([text, *excluded, *issued, *said]))


@app.command()
def backtest(
    data: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder with events.csv and nodes.csv.")],
    times: Annotated[
        str, typer.Option(metavar="T,T,…", help="Train until each time, certify the graph of the next one.")
    ],
    false_positive_rate: Annotated[
        float, typer.Option(metavar="SHARE", help="Choose the threshold for this rate.")
    ] = 0.05,
    confidence: Annotated[
        float | None,
        typer.Option(metavar="P", show_default="none", help="Guarantee the rate; needs --set keep=0.5."),
    ] = None,
    size: Annotated[float, typer.Option(metavar="M", help="Size of attacks for which recall is certified.")] = 1,
    delay: Annotated[float, typer.Option(metavar="DAYS", help="Days by which labels come later than stated.")] = 0,
    typology: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the accounts that names the kind of a case.")
    ] = None,
    division: options.Division = None,
    model: options.Model = None,
    set_: options.Set = None,
    settings: options.SettingsFile = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write everything as JSON.")] = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Replay the past: train until t, certify at the next time, with labels as late as they were.

    Beside each new model stands the first one, as it is and with a threshold chosen anew. Says when rates drift, and
    which columns of the events do. Exit status: 0 all rates hold, 1 one does not.
    """
    wanted = read_settings(
        TrainSettings, "train", settings, set_ or (), data=data, division=division, model=model
    )  # fmt: skip
    from agnncert.cli.backtest_step import backtest_run
    from agnncert.storage import write_atomic

    screen = Screen(json)
    with screen.following() as on_progress:
        replayed = backtest_run(
            wanted, [each.strip() for each in times.split(",")], false_positive_rate=false_positive_rate,
            confidence=confidence, size=size, delay=delay, typology=typology, on_progress=on_progress,
        )  # fmt: skip
    if out is not None:
        write_atomic(out, dumps(replayed.to_json(), indent=2) + "\n")
    screen.result(replayed.to_json(), str(replayed))
    raise typer.Exit(1 if replayed.found.alarms else 0)


@app.command()
def groups(
    file: CertificateFile,
    by: Annotated[
        str,
        typer.Option(
            metavar="degree | age | COLUMN | FILE:COLUMN",
            help="What groups are made of: partners; days since the first event; a column of the run's table of nodes, "
            "or of any table with a column id.",
        ),
    ] = "degree",
    budget: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=N", help="What one attack spends on a group: add_edges=3. May be repeated."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="CLASS", help="The class.", show_default="of the threshold, or the rarest")
    ] = None,
    amount: Annotated[
        str | None,
        typer.Option(
            metavar="events:COLUMN | FILE:COLUMN",
            help="How much money is behind what is found, and stays found: from the run's own events, or a table.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Compare groups of targets: recall, false positives, and how far an attack can drive groups apart."""
    from agnncert.cli.groups_step import amounts_of, groups_of
    from agnncert.cli.settings import pairs

    spent = pairs("budget", budget) if budget else {}
    found = groups_of(file, by, spent, positive)
    outcome, text = found.to_json(), str(found)
    if amount is not None:
        money = amounts_of(file, amount, spent, positive)
        outcome, text = {**outcome, "amounts": asdict(money)}, f"{text}\n{money}"
    Screen(json).result(outcome, text)


@app.command()
def issue(
    file: CertificateFile,
    by: Annotated[str, typer.Option(help="Who issues it.")] = "",
    system: Annotated[str, typer.Option(help="The system, with its version, that it is issued for.")] = "",
    until: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="The last day of its use.")] = "",
    on: Annotated[
        str, typer.Option(metavar="YYYY-MM-DD", help="The first day of its use.", show_default="today")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write.", show_default="issued, beside the certificate"),
    ] = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Verify a certificate and prepare it for others: the file, a statement to sign, and a redacted form.

    The file states who issued it, when, for which system and until when. The statement is an in-toto test result about
    it, which you sign with your own tool. The redacted form has curves and digests, but names no target. With a run
    folder, data and model are verified too; with a file alone, only the arithmetic.
    """
    from agnncert.cli.handover import issue_files, result_in_words

    issued = {name: text for name, text in (("by", by), ("on", on), ("system", system), ("until", until)) if text}
    screen = Screen(json)
    with screen.following() as on_progress:
        files = issue_files(_certificate_in(file), issued, out, _is_run(file), on_progress)
    lines = [f"{name.replace('_', ' ').capitalize() + ':':<15} {path}" for name, path in files.items()]
    lines.append(f"{'Result:':<15} {result_in_words(files['statement'])}")
    screen.result(
        files, "\n".join([*lines, "Sign the statement with a tool of yours, as in docs/guides/hand-over.md."])
    )


@app.command()
def audit(
    model: Annotated[str, typer.Argument(help="package.module:factory, a built-in model, or a run folder.")],
    data: Annotated[
        str | None, typer.Option(help="Data like that to be certified: a dataset, or a folder with tables.")
    ] = None,
    weights: options.Weights = None,
    division: options.Division = None,
    groups: options.Groups = None,
    task: Annotated[
        str | None, typer.Option(help="node or graph.", show_default="the task of the data, else node")
    ] = None,
    model_of_run: options.ModelOfRun = None,
    root: options.Root = None,
    set_: options.Set = None,
    settings: options.SettingsFile = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Check whether a model can be certified: local, deterministic and stateless.

    Lists everything that breaks the guarantee, with a remedy for each. Exit status: 0 the model is compatible, 1 it is
    not.
    """
    named = read_settings(
        DefenceSettings, "audit", settings, set_ or (), model=model, data=data, weights=weights, division=division,
        groups=groups, root=root,
    )  # fmt: skip
    from agnncert.cli.audit_step import audit_named

    audited = audit_named(named, task, model_of_run)
    outcome = {
        "fit": audited.ok, "fit_for": audited.fit_for, "task": audited.task, "division": audited.division,
        "findings": [asdict(finding) for finding in audited.findings],
        "deviation": audited.deviation, "tolerance": audited.tolerance, "locality": audited.locality,
    }  # fmt: skip
    Screen(json).result(outcome, str(audited))
    raise typer.Exit(0 if audited.ok else 1)


@app.command()
def attack(
    run: Annotated[Path, typer.Argument(help="The folder of a certified run.", metavar="RUN")],
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", show_default="greedy",
            help="greedy, random, gradient or exhaustive. May be repeated: the strongest counts.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help="Attack sizes, such as 1,5,20.", show_default="around what is certified"),
    ] = None,
    vary: Annotated[
        str | None, typer.Option(help="The field of the budget that the size counts.", show_default="add_edges")
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=N", help="Another field of the budget: delete_edges=inf. May be repeated."),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="N", help="Targets per size, half of them certified; or all.", show_default="50"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of sample and attacks.", show_default="0")] = None,
    model: options.ModelOfRun = None,
    root: options.Root = None,
    settings: options.SettingsFile = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Try to break a certificate, within what it proves and beyond.

    The attacks know model and division. The share of labels that survive bounds robustness from above, as the
    certificate does from below; the report shows both. Exit status: 0 no certified label changed, 1 one did.
    """
    from agnncert.cli.attack_step import AttackSettings, attack_run
    from agnncert.cli.settings import pairs

    wanted = read_settings(
        AttackSettings, "attack", settings, kind=kind, sizes=sizes, vary=vary, also=pairs("also", also or ()) or None,
        sample=sample, seed=seed,
    )  # fmt: skip
    screen = Screen(json)
    with screen.following():
        attacked = attack_run(run, wanted, root, model)
    titles = [wanted.vary, "certified", "after attack", "certified, attacked", "fell", "others, attacked", "fell "]
    rounds = [list(vars(each).values()) for each in attacked.rounds]
    holds = not attacked.violations
    last = "No certified label fell." if holds else f"{attacked.violations} certified labels fell: refuted."
    outcome = {"run": attacked.folder, "report": attacked.page, "violations": attacked.violations}
    screen.result(
        {**outcome, "rounds": [vars(each) for each in attacked.rounds]},
        f"{table(titles, rounds)}\n{last}\nReport: {attacked.page}",
    )
    raise typer.Exit(0 if holds else 1)


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(help="The folder of a certified run.", metavar="RUN")],
    target: Annotated[
        str, typer.Argument(help="Id of the node, number of the graph, or u,v for a pair.", metavar="ID")
    ],
    model: options.ModelOfRun = None,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Show which votes decided a label.

    The table names the neighbours or subgraphs that voted, what each gave to the label and to the runner-up, and the
    edges with their values. Below it are removals and additions that would change the label. The numbers add up to
    the counts of the certificate.
    """
    from agnncert.cli.explain_step import explain_target

    screen = Screen(json)
    with screen.following():
        explained = explain_target(run, target, root, model)
    screen.result({"run": run, **explained.to_json()}, str(explained))


@app.command()
def report(
    file: CertificateFile,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", metavar="FILE", show_default="beside the certificate")
    ] = None,
    papers: Annotated[
        Path | None, typer.Option(help="Folder for figures (SVG, PDF) and tables (CSV, JSON, LaTeX).", metavar="FOLDER")
    ] = None,
    explain: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Show which votes decided the label of this target. May be repeated."),
    ] = None,
    scores: options.Scores = None,
    model: options.ModelOfRun = None,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Show a certificate as a self-contained HTML page.

    The page of a run folder also has the models to compare with, the attacks and the environment. --explain needs the
    run folder, with --root and --model as for certify.
    """
    from agnncert.cli.report_step import report_run

    explanations = []
    if explain:
        from agnncert.cli.explain_step import explain_target

        explanations = [explain_target(file, target, root, model) for target in explain]
    reported = report_run(file, out, papers, explanations=explanations, scores=scores)
    outcome = {name: getattr(reported, name) for name in ("files", "sentences", "classes")}
    outcome["controls"] = None if reported.controls is None else reported.controls.to_json()
    places = [f"Report: {reported.page}", *(f"  {path}" for path in reported.files)]
    Screen(json).result({"report": reported.page, **outcome}, "\n".join([*places, reported.text]))


@app.command()
def score(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a certified run.")],
    data: Annotated[str | None, typer.Argument(help="The data to label: a dataset, or a folder with tables.")] = None,
    ids: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Label these nodes only: a file with one id on each line.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Label only nodes that the run did not have.")] = False,
    to: Annotated[str, typer.Option(metavar="csv | json | parquet", help="The format.")] = "csv",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write.", show_default="scores.csv")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the certificate of these labels too.")
    ] = None,
    model: options.ModelOfRun = None,
    root: options.Root = None,
    set_: options.Set = None,
    settings: options.SettingsFile = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Label new data with the model, threshold, voting rule and column encoding of a run.

    Writes one row per target, with its score, margin and radius, as agnncert export does.
    """
    named = read_settings(DefenceSettings, "score", settings, set_ or (), data=data, model=model, root=root)
    from agnncert.cli.score_step import score_data

    screen = Screen(json)
    with screen.following() as on_progress:
        scored = score_data(run, named, ids=ids, only_new=new, to=to, out=out, on_progress=on_progress)
    if certificate is not None:
        scored.certificate.save(certificate)
    labels = ", ".join(f"{number:,} {name}" for name, number in scored.counts.items())
    outcome = {
        "file": scored.file,
        "run": scored.run,
        "targets": scored.certificate.num_targets,
        "labels": scored.counts,
    }
    said = f"{scored.certificate.num_targets:,} rows: {scored.file} ({labels})"
    if scored.right is not None:
        right, known = scored.right
        outcome |= {"right": right, "known": known, "accuracy": right / known}
        said += f"; right for {right / known:.1%} of the {known:,} whose class the data says"
    screen.result(outcome, said)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="The earlier run folder or certificate.")],
    new: Annotated[Path, typer.Argument(help="The later one.")],
    size: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help="The perturbation size at which labels count as certified.",
            show_default="1; 0 where all count what comes on top of additions",
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=N", help="A budget instead of a size: inject_nodes=2. May be repeated."),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="label,lost,gained,new,gone",
            help="Which changes end with status 1, with commas between them, or nothing.",
        ),
    ] = "label,lost",
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page too.")] = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Show what changed between two runs: labels, certificates at a budget, new and removed targets, and why.

    Exit status: 0 no change that --fail-on names, 1 there is one.
    """
    from agnncert.certificates.budget import Budget
    from agnncert.cli.diff_step import diff_runs, failing
    from agnncert.cli.report_step import unlimited
    from agnncert.cli.settings import pairs

    at = Budget().but(**unlimited(pairs("budget", budget))) if budget else size
    compared = diff_runs(old, new, at, page)
    reasons = failing(compared.difference, fail_on)
    outcome = {"old": old, "new": new, "page": page, "failing": reasons, **compared.difference.to_json()}
    Screen(json).result(outcome, compared.text)
    raise typer.Exit(1 if reasons else 0)


@app.command()
def export(
    run: CertificateFile,
    to: Annotated[str, typer.Option(metavar="csv | json | parquet | contest", help="The format.")] = "csv",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write.", show_default="beside the certificate")
    ] = None,
    json: options.Json = False,
) -> None:
    """Write one row per target: id, class, score, margin, radius, structure radius, and the run they come from.

    With --to contest, write the certificate in the open format that `agnncert check` reads.
    """
    from agnncert.cli.export_step import CONTEST, export_certificate

    exported = export_certificate(_certificate_in(run), to, out)
    rows = "targets" if to == CONTEST else "rows"
    Screen(json).result(asdict(exported), f"{exported.rows:,} {rows}: {exported.file}")


@app.command()
def log(
    run: Annotated[Path, typer.Argument(help="The folder of a certified run.", metavar="RUN")],
    to: Annotated[str, typer.Option(help="What to log to: mlflow.")] = "mlflow",
    tracking: Annotated[
        str | None,
        typer.Option(help="Store of MLflow, such as sqlite:///mlflow.db.", metavar="URI", show_default="MLflow's own"),
    ] = None,
    experiment: Annotated[str, typer.Option(help="Name of the experiment.", metavar="NAME")] = "agnncert",
    json: options.Json = False,
) -> None:
    """Log a certified run to an experiment tracker: settings, figures by size, certificate and report.

    A run that was logged before is left as it is. Needs MLflow.
    """
    from agnncert.cli.log_step import log_run

    logged = log_run(run, to, tracking, experiment)
    verb = "Logged" if logged.is_new else "Logged before:"
    text = f"{verb} {logged.metrics} figures and {', '.join(logged.artifacts)} as run {logged.run_id} of {experiment}."
    Screen(json).result(asdict(logged), text)


for _addon in addons("agnncert.commands").values():
    app.command()(_addon.load())
