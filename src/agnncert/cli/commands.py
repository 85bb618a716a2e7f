"""The commands, one function per verb, in the order of ``agnncert --help``.

A command reads its options, calls one function and prints what came out. Everything heavy is imported inside the
commands, so that help and ``agnncert verify FILE`` answer at once.
"""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from agnncert.cli.options import RUN, Address, Fresh, From, Json, On, Out, SettingsFile, numbers, pairs, workers_named
from agnncert.cli.screen import Screen, percent, table
from agnncert.cli.settings import CERTIFICATION, DATA, MODEL, CertifySettings, DataSettings, TrainSettings
from agnncert.errors import SettingsError

COMPARISON, SAMPLING = "Comparison", "Sampling"
BUILT_IN = "gcn, sage, gat, gin, resgcn, mlp, or package.module:factory."
DEMO = Path("runs/demo")
OF_RUN = "The model of the run again, if it is package.module:factory."
RUN_OR_DATA = "Folder of a trained run; or a dataset, or a folder with tables."


def demo(
    out: Annotated[Path, typer.Option(help="Run folder; a run that it holds is replaced.", metavar="FOLDER")] = DEMO,
    json: Json = False,
) -> None:
    """Train, certify, attack, verify and report on bundled data, in about a minute.

    Needs no network. Ends with a page to open in a browser.
    """
    from agnncert.cli.demo_step import demo_run

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
    from agnncert.cli.train_step import train_run

    screen = Screen(json)
    with screen.following() as on_progress:
        trained = train_run(wanted, out, fresh, on_progress)
    lines = [
        f"  {name}: {percent(value) if 'accuracy' in name else f'{value:g}'}"
        for name, value in trained.measured.items()
    ]
    own = f" --model {wanted.model}" if ":" in (wanted.model or "") else ""
    text = "\n".join([*lines, f"The model is in {trained.folder}. Next: agnncert certify {trained.folder}{own}"])
    screen.result({"run": trained.folder, "settings": trained.settings.table(), **trained.measured}, text)


def certify(
    wanted: Annotated[CertifySettings, From(data={"help": RUN_OR_DATA, "metavar": "RUN | DATA"})],
    report: Annotated[
        bool, typer.Option(help="Write the report as well.", rich_help_panel=CERTIFICATION, metavar="")
    ] = True,
    on: On = None,
    address: Address = None,
    out: Out = None,
    fresh: Fresh = False,
    settings: SettingsFile = None,
    json: Json = False,
) -> None:
    """Prove how much of the graph an attacker may change without changing the voted labels.

    Takes the folder that agnncert train left, or any model of yours on any graph of yours, and leaves the
    certificate and its report in a run folder. Interrupted, the same command goes on where it stopped.
    """
    import numpy as np

    from agnncert.cli.certify_step import certify_run

    screen, workers = Screen(json), workers_named(on, address)
    with screen.following() as on_progress:
        certified = certify_run(wanted, out, fresh, report, on_progress, workers)
    certificate = certified.certificate
    outcome = {
        "run": certified.folder, "certificate": certified.folder.certificate, "report": certified.page,
        "targets": certificate.num_targets, "median_radius": float(np.median(certificate.radius)),
        "division": certificate.claim.division, "vote": certificate.vote and certificate.vote.to_json(),
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

    With --data, --model or --ballots, it is compared with the data and the model as well: those of the run folder
    in which the file lies, unless others are named. With --weights of your own, those of the folder are not read.
    Exit status: 0 it holds, 1 it does not.
    """
    from agnncert.verdict import verify as check

    certificate = file / "certificate.cert" if file.is_dir() else file
    if ballots != "all" and not ballots.isdecimal():
        raise SettingsError(f'--ballots {ballots}: expected a whole number from 0 on, or "all".')
    num_ballots = math.inf if ballots == "all" else int(ballots)
    screen = Screen(json)
    if not (num_ballots or named.data or named.model or named.weights):
        verdict = check(certificate)
    else:
        from agnncert.cli.check_step import verify_named

        with screen.following() as on_progress:
            verdict = verify_named(certificate, named, num_ballots, on_progress)
    outcome = {
        "holds": verdict.holds,
        "reasons": verdict.reasons,
        "checked": verdict.checked,
        "not_checked": verdict.not_checked,
    }
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
    model_of_run: Annotated[str | None, typer.Option("--model", help=OF_RUN, rich_help_panel=MODEL)] = None,
    settings: SettingsFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Find out whether a model may be certified: local, deterministic, without memory.

    Lists everything that breaks the guarantee, with a remedy for each. Exit status: 0 the model is fit, 1 it
    is not.
    """
    from agnncert.cli.check_step import audit_named

    audited = audit_named(named, task, model_of_run)
    outcome = {
        "fit": audited.ok, "fit_for": audited.fit_for, "task": audited.task, "division": audited.division,
        "findings": [asdict(finding) for finding in audited.findings],
        "deviation": audited.deviation, "tolerance": audited.tolerance, "locality": audited.locality,
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
    where: Annotated[CertifySettings, From("root", "model", model={"help": OF_RUN})],
    settings: SettingsFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Try to break a certificate, within what it proves and beyond.

    The attacks know model and division. The share of labels that survive is an upper bound beside the
    certified lower one; both go into the report. Exit status: 0 no certified label fell, 1 one did.
    """
    from agnncert.cli.attack_step import AttackSettings, attack_run

    wanted = AttackSettings(
        kind=tuple(kind), vary=vary, sizes=numbers("sizes", sizes), also=pairs("also", also),
        sample=None if sample == "all" else numbers("sample", sample)[0], seed=seed,
    )  # fmt: skip
    screen = Screen(json)
    with screen.following():
        attacked = attack_run(run, wanted, where.root, where.model)
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
            "node:num_groups=100 (or inf) or bi-rs:p_edge=0.7,p_node=0.9. May be repeated.",
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
        bool,
        typer.Option(
            help="Also show an undefended model and one without edges.", rich_help_panel=COMPARISON, metavar=""
        ),
    ] = True,
    design_size: Annotated[
        str,
        typer.Option(
            metavar="N,N,…", rich_help_panel=COMPARISON, show_default="none",
            help="Choose the vote of edge and node for attacks of this size; of several, each has a row.",
        ),
    ] = "",
    base: Annotated[
        TrainSettings,
        From(
            "model", "set", "epochs", "protocol", "empty", "prior",
            model={"default": "gcn", "help": "The base model of all, or package.module:factory."},
            epochs={"panel": MODEL, "help": "Epochs of training."},
            protocol={"panel": MODEL, "default": None, "shown_default": "transductive"},
            empty={"panel": COMPARISON},
            prior={"panel": COMPARISON},
        ),
    ],
    n0: Annotated[int, typer.Option(help="Samples that choose labels.", rich_help_panel=SAMPLING)] = 100,
    n: Annotated[
        int, typer.Option("--samples", help="Samples that bound probabilities.", rich_help_panel=SAMPLING)
    ] = 10_000,
    alpha: Annotated[float, typer.Option(help="Probability of error.", rich_help_panel=SAMPLING)] = 0.01,
    data: Annotated[DataSettings, From("root", "column", "feature", "directed", "name", "seed")],
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
        from agnncert.cli.compare_step import side_by_side

        titles, rows = side_by_side(what)
        screen.result({"runs": [dict(zip(titles, row, strict=True)) for row in rows]}, table(titles, rows))
        return
    if len(what) > 1:
        raise SettingsError(f"expected folders of runs, or one dataset; {', '.join(what)} are neither.")
    from agnncert.cli.compare_step import compare_run

    injected = math.inf if edges_per_injected == "inf" else numbers("edges-per-injected", edges_per_injected)[0]
    designs = numbers("design-size", design_size)
    if designs and base.sets_vote:
        raise SettingsError("--design-size chooses the vote: leave out --empty and --prior.")
    with screen.following() as on_progress:
        compared = compare_run(
            replace(data, data=what[0]), [_defence(text) for text in defence], out, on_progress,
            attack=attack, sizes=numbers("sizes", sizes) or None, edges_per_injected=injected,
            own_features=own_features, references=references, model=base.model, model_args=base.set,
            fit_args=base.fit, voting=base, design_size=designs or None, n0=n0, n=n, alpha=alpha,
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
    from agnncert.cli.report_step import report_run

    reported = report_run(file, out, papers)
    outcome = {"report": reported.page, "files": reported.files, "sentences": reported.sentences}
    places = [f"Report: {reported.page}", *(f"  {path}" for path in reported.files)]
    Screen(json).result(outcome, "\n".join([*places, *reported.sentences]))


COMMANDS = (demo, datasets, train, certify, verify, audit, attack, compare, report)
