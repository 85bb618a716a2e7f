"""The commands, one function per verb, in the order of ``agnncert --help``.

A command reads its options, calls one function and prints what came out. Everything heavy is imported inside the
commands, so that help and ``agnncert verify FILE`` answer at once.
"""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from agnncert.cli.options import RUN, Fresh, From, Json, Out, SettingsFile, numbers, pairs
from agnncert.cli.screen import Screen, percent, table
from agnncert.errors import SettingsError
from agnncert.studies.settings import CERTIFICATION, DATA, MODEL, CertifySettings, DataSettings, TrainSettings

COMPARISON, SAMPLING = "Comparison", "Sampling"
BUILT_IN = "gcn, sage, gat, gin, resgcn, mlp, or package.module:factory."
DEMO = Path("runs/demo")
RUN_OR_DATA = "Folder of a trained run; or a dataset, or a folder with tables."


def demo(
    out: Annotated[Path, typer.Option(help="Run folder; a run that it holds is replaced.", metavar="FOLDER")] = DEMO,
    json: Json = False,
) -> None:
    """Train, certify, attack, verify and report on bundled data, in about a minute.

    Needs no network. Ends with a page to open in a browser.
    """
    from agnncert.studies.demo import demo_run

    screen = Screen(json)
    with screen.following() as on_progress:
        shown = demo_run(out, on_progress)
    violations = shown.attacked.violations
    certified = sum(each.attacked_certified for each in shown.attacked.rounds)
    others = sum(each.attacked_others for each in shown.attacked.rounds)
    fallen = sum(each.fallen_others for each in shown.attacked.rounds)
    lines = [
        f"\nAttacked within the proof: {violations} of {certified} labels changed. Beyond it: {fallen} of {others}.",
        str(shown.verdict).splitlines()[0],
        f"Done in {shown.seconds:.0f} s. Open {shown.page} in a browser.\n",
        *shown.sentences,
    ]
    outcome = {
        "run": shown.folder, "report": shown.page, "sentences": shown.sentences, "holds": shown.verdict.holds,
        "violations": violations, "seconds": round(shown.seconds, 1), "results": shown.folder.rows(),
    }  # fmt: skip
    screen.result(outcome, "\n".join(lines))
    raise typer.Exit(0 if shown.verdict.holds and not violations else 1)


def datasets(where: Annotated[DataSettings, From("root", root={"panel": None})], json: Json = False) -> None:
    """List the datasets, and which of them are on this machine.

    Missing files are downloaded when a dataset is first used. Without a network, put them where the error
    message of that first use says; digits-knn and digits-grid need no files.
    """
    from agnncert.datasets.catalog import DATASETS, SOURCES, default_root

    place = Path(where.root) if where.root is not None else default_root()
    missing = {name: source.missing(place) for name, source in SOURCES.items()}
    here = {name: "built in" if name not in missing else "no" if missing[name] else "yes" for name in DATASETS}
    rows = [{**asdict(info), "here": here[name], "missing": missing.get(name, [])} for name, info in DATASETS.items()]
    titles = ["name", "task", "size", "edges", "classes", "features", "here", "about"]
    text = table(titles, [[row[title] for title in titles] for row in rows])
    Screen(json).result({"root": place, "datasets": rows}, f"{text}\n\nFolder: {place}")


def train(
    wanted: Annotated[TrainSettings, From(model={"default": "gcn", "help": BUILT_IN}, weights=None)],
    out: Out = None,
    fresh: Fresh = False,
    settings: SettingsFile = None,
    json: Json = False,
) -> None:
    """Train a model that votes well, on the graph and all its subgraphs.

    Leaves a run folder with the weights; agnncert certify FOLDER goes on from there. Interrupted, the same
    command takes up where it stopped.
    """
    from agnncert.studies.train import train_run

    screen = Screen(json)
    with screen.following() as on_progress:
        trained = train_run(wanted, out, fresh, on_progress)
    lines = [
        f"  {name}: {percent(value) if 'accuracy' in name else f'{value:g}'}"
        for name, value in trained.measured.items()
    ]
    text = "\n".join([*lines, f"The model is in {trained.folder}. Next: agnncert certify {trained.folder}"])
    screen.result({"run": trained.folder, "settings": trained.settings.table(), **trained.measured}, text)


def certify(
    wanted: Annotated[CertifySettings, From(data={"help": RUN_OR_DATA, "metavar": "RUN | DATA"})],
    report: Annotated[bool, typer.Option(help="Write the report as well.", rich_help_panel=CERTIFICATION)] = True,
    out: Out = None,
    fresh: Fresh = False,
    settings: SettingsFile = None,
    json: Json = False,
) -> None:
    """Prove how much of the graph an attacker may change without changing the voted labels.

    Takes the folder that agnncert train left, or any model of yours on any graph of yours, and leaves the
    certificate and its report in a run folder.
    """
    import numpy as np

    from agnncert.studies.certify import certify_run

    screen = Screen(json)
    with screen.following():
        certified = certify_run(wanted, out, fresh, report)
    certificate = certified.certificate
    outcome = {
        "run": certified.folder, "certificate": certified.folder.certificate, "report": certified.page,
        "targets": certificate.num_targets, "median_radius": float(np.median(certificate.radius)),
        "seconds": round(certified.seconds, 3), "sentences": certified.sentences,
        "results": certified.folder.rows("certify"),
    }  # fmt: skip
    places = [f"Certificate: {certified.folder.certificate}"]
    places += [f"Report:      {certified.page}"] if certified.page else []
    screen.result(outcome, "\n".join([*places, *certified.sentences]))


def verify(
    file: Annotated[Path, typer.Argument(help="A certificate, or the run folder that holds one.", metavar="FILE")],
    ballots: Annotated[
        str, typer.Option(help="Ballots to cast again, chosen at random, or all. Needs data and model.", metavar="N")
    ] = "0",
    *,
    named: Annotated[
        CertifySettings,
        From(
            "data", "root", "model", "weights", "set", "column", "feature", "directed", "seed",
            data={
                "is_argument": False, "metavar": "DATA",
                "help": "The data: a run folder, a dataset or a folder with tables.",
            },
            model={"panel": None, "help": "The model as package.module:factory, or built in."},
            weights={"panel": None},
            seed={"panel": None, "help": "Seed of the choice of ballots, and of a split that is drawn."},
        ),
    ],
    settings: SettingsFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Check a certificate: derive everything it states again, from the file alone.

    With --ballots, ballots are cast again as well, one subgraph at a time. Data and model are those of the
    run folder in which the file lies, unless others are named. Exit status: 0 it holds, 1 it does not.
    """
    from agnncert.verifier import verify as check

    certificate = file / "certificate.cert" if file.is_dir() else file
    if ballots != "all" and not ballots.isdecimal():
        raise SettingsError(f'--ballots {ballots}: expected a whole number from 0 on, or "all".')
    num_ballots = math.inf if ballots == "all" else int(ballots)
    screen = Screen(json)
    if not (num_ballots or named.data or named.model):
        verdict = check(certificate)
    else:
        from agnncert.studies.checks import verify_named

        with screen.following():
            verdict = verify_named(certificate, named, num_ballots)
    outcome = {"holds": verdict.holds, "reasons": verdict.reasons, "checked": verdict.checked}
    screen.result({"file": certificate, **outcome}, str(verdict))
    raise typer.Exit(0 if verdict.holds else 1)


def audit(
    named: Annotated[
        CertifySettings,
        From(
            "model", "weights", "set", "division", "groups",
            "data", "root", "nodes", "edges", "graphs", "column", "feature", "directed", "seed",
            model={
                "is_argument": True, "panel": None, "default": ...,
                "help": "package.module:factory, a built-in model, or a run folder.",
            },
            weights={"help": "Weights, a safetensors file."},
            data={
                "is_argument": False, "panel": DATA,
                "help": "Data like that to be certified: a dataset, or a folder with tables.",
            },
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(help="node or graph.", rich_help_panel=MODEL, show_default="that of the data, else node"),
    ] = None,
    settings: SettingsFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Find out whether a model may be certified: local, deterministic, without memory.

    Lists everything that breaks the guarantee, with a remedy for each. Exit status: 0 the model is fit, 1 it
    is not.
    """
    from agnncert.studies.checks import audit_named

    audited = audit_named(named, task)
    outcome = {
        "fit": audited.ok, "fit_for": audited.fit_for, "task": audited.task, "division": audited.division,
        "findings": [asdict(finding) for finding in audited.findings],
        "deviation": audited.deviation, "tolerance": audited.tolerance,
    }  # fmt: skip
    Screen(json).result(outcome, str(audited))
    raise typer.Exit(0 if audited.ok else 1)


def attack(
    run: Annotated[Path, typer.Argument(help="The folder of a certified run.", metavar="RUN")],
    *,
    kind: Annotated[
        list[str],
        typer.Option(
            default_factory=lambda: ["greedy"], show_default="greedy", metavar="NAME",
            help="greedy, injection, deletions, features, hubs, random, gradient or exhaustive. May be repeated: the "
            "best counts.",
        ),
    ],
    sizes: Annotated[
        str,
        typer.Option(help="Amounts to try, such as 1,5,20.", metavar="N,N,…", show_default="around what is certified"),
    ] = "",
    vary: Annotated[str, typer.Option(help="The field of the budget that grows.")] = "add_edges",
    also: Annotated[
        list[str],
        typer.Option(
            default_factory=list, show_default=False, metavar="FIELD=N",
            help="The rest of the budget, such as delete_edges=inf. May be repeated.",
        ),
    ],
    sample: Annotated[
        str, typer.Option(help="Targets to attack at each size, half of them certified; or all.", metavar="N")
    ] = "50",
    seed: Annotated[int, typer.Option(help="Seed of the sample and of the attacks.")] = 0,
    where: Annotated[DataSettings, From("root")],
    settings: SettingsFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Try to break a certificate, within what it proves and beyond.

    The attacks know model and division. The share of labels that survive is an upper bound beside the
    certified lower one; both go into the report. Exit status: 0 no certified label fell, 1 one did.
    """
    from agnncert.studies.attack import AttackSettings, attack_run

    wanted = AttackSettings(
        kind=tuple(kind), vary=vary, sizes=numbers("sizes", sizes), also=pairs("also", also),
        sample=None if sample == "all" else numbers("sample", sample)[0], seed=seed,
    )  # fmt: skip
    screen = Screen(json)
    with screen.following():
        attacked = attack_run(run, wanted, where.root)
    titles = [vary, "certified", "after attack", "certified, attacked", "fell", "others, attacked", "fell "]
    rounds = [
        [r.size, r.certified, r.left, r.attacked_certified, r.fallen_certified, r.attacked_others, r.fallen_others]
        for r in attacked.rounds
    ]
    holds = not attacked.violations
    last = "No certified label fell." if holds else f"{attacked.violations} certified labels fell: refuted."
    outcome = {"run": attacked.folder, "report": attacked.page, "violations": attacked.violations}
    outcome["rounds"] = [vars(each) for each in attacked.rounds]
    screen.result(outcome, f"{table(titles, rounds)}\n{last}\nReport: {attacked.page}")
    raise typer.Exit(0 if holds else 1)


def compare(
    what: Annotated[
        list[str],
        typer.Argument(help="Folders of runs; or a dataset, or a folder with tables.", metavar="RUN… | DATA"),
    ],
    *,
    attack: Annotated[
        str, typer.Option(help="edges, injection, features, or 'edges and features'.", rich_help_panel=COMPARISON)
    ] = "edges",
    defence: Annotated[
        list[str],
        typer.Option(
            default_factory=list, show_default="those that cover the attack", metavar="NAME",
            rich_help_panel=COMPARISON,
            help="edge, node, gated, gnncert-e, gnncert-n, gnncert-en, rs, sparse-rs or bi-rs, with settings as in "
            "node:num_groups=100 or bi-rs:p_edge=0.7,p_node=0.9. May be repeated.",
        ),
    ],
    sizes: Annotated[
        str, typer.Option(help="Sizes, such as 0,5,20.", metavar="N,N,…", rich_help_panel=COMPARISON)
    ] = "",
    edges_per_injected: Annotated[
        str, typer.Option(help="Edges of each injected node, or inf.", metavar="N", rich_help_panel=COMPARISON)
    ] = "inf",
    own_features: Annotated[
        bool,
        typer.Option("--own-features", metavar="", help="Targets' own features too.", rich_help_panel=COMPARISON),
    ] = False,
    references: Annotated[
        bool, typer.Option(help="Also show an undefended model and one without edges.", rich_help_panel=COMPARISON)
    ] = True,
    base: Annotated[
        TrainSettings,
        From(
            "model", "set", "epochs",
            model={"default": "gcn", "help": "The base model of all, or package.module:factory."},
            epochs={"panel": MODEL, "help": "Epochs of training."},
        ),
    ],
    n0: Annotated[int, typer.Option(help="Samples that choose labels.", rich_help_panel=SAMPLING)] = 100,
    n: Annotated[
        int, typer.Option("--samples", help="Samples that bound probabilities.", rich_help_panel=SAMPLING)
    ] = 10_000,
    alpha: Annotated[float, typer.Option(help="Probability of error.", rich_help_panel=SAMPLING)] = 0.01,
    data: Annotated[DataSettings, From("root", "column", "feature", "directed", "seed")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables, figures and certificates.", rich_help_panel=RUN, metavar="FOLDER"),
    ] = None,
    settings: SettingsFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Put runs side by side, or defences on one dataset.

    Given run folders, it shows what they differ in and what came out. Given data, it trains and certifies with
    every defence that covers the attack, on the same split, and shows certified accuracy and cost.
    """
    screen = Screen(json)
    if all(Path(place, "settings.toml").is_file() for place in what):
        from agnncert.studies.compare import side_by_side

        titles, rows = side_by_side(what)
        screen.result({"runs": [dict(zip(titles, row, strict=True)) for row in rows]}, table(titles, rows))
        return
    if len(what) > 1:
        raise SettingsError(f"expected folders of runs, or one dataset; {', '.join(what)} are neither.")
    from agnncert.studies.compare import compare_run

    injected = math.inf if edges_per_injected == "inf" else numbers("edges-per-injected", edges_per_injected)[0]
    with screen.following() as on_progress:
        compared = compare_run(
            replace(data, data=what[0]), [_defence(text) for text in defence], out, on_progress,
            attack=attack, sizes=numbers("sizes", sizes) or None, edges_per_injected=injected,
            own_features=own_features, references=references, model=base.model, model_args=base.set,
            fit_args=base.fit, n0=n0, n=n, alpha=alpha,
        )  # fmt: skip
    outcome = {"folder": compared.folder, "files": compared.files, **compared.comparison.to_json()}
    screen.result(outcome, f"{compared.comparison}\n\nTables and figures: {compared.folder}")


def _defence(text: str) -> tuple[str, dict[str, Any]]:
    """Name and settings of a defence, from text such as ``bi-rs:p_edge=0.7,p_node=0.9``."""
    name, _, rest = text.partition(":")
    return name, pairs("defence", [word for word in rest.split(",") if word])


def report(
    file: Annotated[Path, typer.Argument(help="A certificate, or the run folder that holds one.", metavar="FILE")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write.", metavar="FILE", show_default="report.html beside the certificate"),
    ] = None,
    papers: Annotated[
        Path | None, typer.Option(help="Folder for figures (SVG, PDF) and tables (CSV, LaTeX).", metavar="FOLDER")
    ] = None,
    json: Json = False,
) -> None:
    """Show a certificate as one HTML page that opens anywhere.

    Of a run folder it also shows the models to compare with, the attacks and the environment.
    """
    from agnncert.studies.report import report_run

    reported = report_run(file, out, papers)
    outcome = {"report": reported.page, "files": reported.files, "sentences": reported.sentences}
    places = [f"Report: {reported.page}", *(f"  {path}" for path in reported.files)]
    Screen(json).result(outcome, "\n".join([*places, *reported.sentences]))


def repeat(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the new run.", metavar="FOLDER", show_default="RUN-again")
    ] = None,
    *,
    where: Annotated[DataSettings, From("root")],
    json: Json = False,
) -> None:
    """Do a run again from its folder alone, and compare what comes out.

    Exit status: 0 the same weights, labels and radii came out, 1 something differs.
    """
    from agnncert.studies.repeat import repeat_run

    screen = Screen(json)
    with screen.following() as on_progress:
        repeated = repeat_run(run, out, where.root, on_progress)
    same = not repeated.differences
    lines = [f"  differs: {difference}" for difference in repeated.differences]
    head = f"{repeated.folder} is {'the same as' if same else 'not the same as'} {run}."
    outcome = {"run": repeated.folder, "same": same, "differences": repeated.differences}
    screen.result(outcome, "\n".join([head, *lines]))
    raise typer.Exit(0 if same else 1)


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments; see --list.", metavar="NAME…", show_default=False)
    ] = None,
    *,
    list_: Annotated[
        bool, typer.Option("--list", metavar="", help="List the experiments, and what is done of each.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", metavar="", help="All experiments.")] = False,
    small: Annotated[
        bool, typer.Option("--small", metavar="", help="A first look: small data and few runs, in minutes.")
    ] = False,
    only: Annotated[
        list[str],
        typer.Option(
            help="Run this dataset only. May be repeated.", metavar="DATASET", default_factory=list, show_default=False
        ),
    ],
    run: Annotated[bool, typer.Option(help="Run what is missing, or only write the page anew.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for the rows.", metavar="FOLDER")] = Path("results"),
    page: Annotated[
        Path | None,
        typer.Option(
            help="The page to write; figures go beside it.", metavar="FILE", show_default="results.md in the folder"
        ),
    ] = None,
    benchmarks: Annotated[
        Path | None, typer.Option(help="Folder with the results of make bench, for the page.", metavar="FOLDER")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Compare the rows with those of another folder, run for run.", metavar="FOLDER")
    ] = None,
    where: Annotated[DataSettings, From("root", root={"panel": None})],
    json: Json = False,
) -> None:
    """Run the paper's experiments, and draw its figures and tables beside ours.

    Every run leaves a row; what is there already is not run again, so that an interrupted command, given
    again, goes on where it stopped.

    Exit status: 0 done, 1 rows differ from those of --against.
    """
    from agnncert.studies.paper.spec import EXPERIMENTS

    screen = Screen(json)
    if list_:
        _list_experiments(screen, out, small)
        return
    chosen = list(EXPERIMENTS) if all_ else names or []
    if not chosen:
        raise SettingsError(f"which experiments? Name some, or use --all. Valid: {', '.join(EXPERIMENTS)}.")
    from agnncert.studies.paper import reproduce as run_experiments

    with screen.following() as on_progress:
        done = run_experiments(
            chosen, out, small=small, root=where.root, datasets=only, run=run, page=page, benchmarks=benchmarks,
            on_progress=on_progress,
        )  # fmt: skip
    lines = [
        f"{len(done.rows)} rows in {out}, {done.ran} of them new, {len(done.missing)} missing.",
        f"Page: {done.page}",
    ]
    left = {"rows": done.rows, "ran": done.ran, "missing": len(done.missing), "page": done.page, "folder": out}
    if against is None:
        screen.result(left, "\n".join(lines))
        return
    from agnncert.studies.paper import Results, compare_results

    compared = compare_results(Results.read(out), Results.read(against))
    lines += [f"{compared.compared} runs are in {against} too; accuracies differ by {compared.largest:.4f} at most."]
    lines += [f"  differs: {difference}" for difference in compared.differences]
    agreement = {"compared": compared.compared, "largest": compared.largest, "differences": compared.differences}
    screen.result({**left, "against": agreement}, "\n".join(lines))
    raise typer.Exit(1 if compared.differences else 0)


def _list_experiments(screen: Screen, folder: Path, small: bool) -> None:
    from agnncert.studies.paper.rows import Results
    from agnncert.studies.paper.spec import EXPERIMENTS, settings_of

    results = Results.read(folder)
    rows = []
    for name, (about, _) in EXPERIMENTS.items():
        runs = settings_of(name, small)
        rows.append([name, len(runs), sum(results.get(run) is not None for run in runs), about])
    titles = ["name", "runs", "done", "about"]
    screen.result({"experiments": [dict(zip(titles, row, strict=True)) for row in rows]}, table(titles, rows))


COMMANDS = (demo, datasets, train, certify, verify, audit, attack, compare, report, repeat, reproduce)
