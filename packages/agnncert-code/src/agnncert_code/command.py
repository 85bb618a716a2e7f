"""The command ``agnncert scan``: fits or measures a detector, and scans a source tree with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agnncert.cli.screen import Screen, table
from agnncert.errors import SettingsError

if TYPE_CHECKING:
    from agnncert_code.findings import Scan, ScannedFunction
    from agnncert_code.scanner import Scanned
    from agnncert_code.syntax import Language

# Panels of the help page.
DETECTOR = "Detector"
READING = "Reading"
OUTPUT = "Output"
MOST_SKIPPED = 10  # files and functions that are named on the screen


def scan(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="A folder with C or C++ files, or one file. Not needed with --fit or --measure.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    *,
    run: Annotated[
        Path, typer.Option(help="Folder of the detector: of --fit, or of agnncert train big-vul.", metavar="RUN")
    ],
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            metavar="",
            rich_help_panel=DETECTOR,
            help="First fit a vote of statements to Big-Vul, measure its accuracy, and store both in RUN.",
        ),
    ] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            metavar="",
            rich_help_panel=DETECTOR,
            help="First measure the accuracy of RUN on Big-Vul's test part, and store it in RUN.",
        ),
    ] = False,
    root: Annotated[
        Path | None,
        typer.Option(
            help="Folder that holds Big-Vul, for --fit and --measure.", metavar="FOLDER", rich_help_panel=DETECTOR
        ),
    ] = None,
    size: Annotated[
        int,
        typer.Option(
            help="With --fit: number of edited statements to fit for; 0 for the best accuracy.",
            metavar="N",
            rich_help_panel=DETECTOR,
        ),
    ] = 0,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Votes with which the two classes start; 10,0: “vulnerable” needs a lead of more than ten. The "
            "accuracy of the detector is then unknown.",
            metavar="N,N",
            show_default="that of the run",
            rich_help_panel=DETECTOR,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="The model of the run again, if it is package.module:factory.", rich_help_panel=DETECTOR),
    ] = None,
    language: Annotated[str, typer.Option(help="cpp, which reads most C too, or c.", rich_help_panel=READING)] = "cpp",
    exclude: Annotated[
        list[str],
        typer.Option(
            default_factory=list,
            show_default=False,
            metavar="PATTERN",
            rich_help_panel=READING,
            help="Paths below the folder to skip, such as test or 'vendor/*.c'. May be repeated.",
        ),
    ],
    workers: Annotated[int, typer.Option(help="Processes that read files.", metavar="N", rich_help_panel=READING)] = 1,
    top: Annotated[int, typer.Option(help="Functions to print.", metavar="N", rich_help_panel=OUTPUT)] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the page, the certificate and the verdicts; an earlier scan in it is replaced.",
            metavar="FOLDER",
            show_default="runs/scan-NAME",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    sarif: Annotated[
        Path | None,
        typer.Option(help="File for SARIF 2.1.0, which code hosts read.", metavar="FILE", rich_help_panel=OUTPUT),
    ] = None,
    fail_on: Annotated[
        int | None,
        typer.Option(
            help="Exit with status 1 if a function looks vulnerable and that verdict is certified against at least N "
            "edited statements; 0: if any looks vulnerable.",
            metavar="N",
            show_default="never",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", metavar="", help="Print the result as JSON.")] = False,
) -> None:
    """Find functions that look vulnerable, with a proof of how many edited statements cannot change each verdict.

    Two commands: agnncert scan --fit --run RUN fits a detector, agnncert scan FOLDER --run RUN scans with it. The
    accuracy of the detector is stated beside that of function length: on Big-Vul it is hardly better. Exit status: 0
    done, 1 a function was found that --fail-on names.
    """
    if folder is None and not (fit or measure):
        raise SettingsError("name a FOLDER to scan, or give --fit or --measure.")
    if fail_on is not None and fail_on < 0:
        raise SettingsError(f"--fail-on {fail_on}: expected a whole number from 0 on.")
    grammar = _grammar(language)
    class_prior = _class_prior(prior)
    from agnncert_code.detector import fit_detector, load_detector, measure_run
    from agnncert_code.findings import accuracy_text
    from agnncert_code.scanner import ScanSettings, scan_run

    screen = Screen(json)
    if fit:
        fit_detector(run, root, size=size)
    elif measure:
        measure_run(run, root, model)
    if folder is None:
        accuracy = load_detector(run, model=model).accuracy
        screen.result(
            {"run": run, "accuracy": None if accuracy is None else vars(accuracy)},
            f"{accuracy_text(accuracy)}\nNext: agnncert scan FOLDER --run {run}",
        )
        return
    settings = ScanSettings(grammar, exclude, workers=workers)
    with screen.following() as progress:
        done = scan_run(
            folder, run, out=out, sarif=sarif, prior=class_prior, model=model, settings=settings, progress=progress
        )
    failing = _failing(done.scan, fail_on)
    outcome = {
        **done.scan.to_json(),
        "flagged": len(done.scan.flagged),
        "failing": len(failing),
        "report": done.page,
        "certificates": done.certificates,
        "verdicts": done.verdicts,
        "sarif": done.sarif,
    }
    screen.result(outcome, "\n".join(_lines(done, top, failing, fail_on)))
    raise typer.Exit(1 if failing else 0)


def _grammar(language: str) -> "Language":
    if language == "cpp":
        return "cpp"
    if language == "c":
        return "c"
    raise SettingsError(f"--language {language}: expected cpp, which reads most C too, or c.")


def _class_prior(text: str | None) -> tuple[int, ...] | None:
    """Returns the two whole numbers of a text such as ``"10,0"``."""
    if text is None:
        return None
    try:
        first, second = (int(word) for word in text.split(","))
    except ValueError:
        raise SettingsError(f"--prior {text}: expected two whole numbers, such as 10,0.") from None
    return first, second


def _failing(scan: "Scan", fail_on: int | None) -> "tuple[ScannedFunction, ...]":
    """Returns the functions that ``--fail-on`` names."""
    if fail_on is None:
        return ()
    return scan.flagged if fail_on == 0 else scan.withstanding(fail_on)


def _lines(done: "Scanned", top: int, failing: "tuple[ScannedFunction, ...]", fail_on: int | None) -> list[str]:
    """Returns what is printed about a scan."""
    from agnncert_code.findings import accuracy_text

    scan = done.scan
    name = scan.name_of(scan.suspicious)
    num_flagged = len(scan.flagged)
    num_functions = len(scan.functions)
    seconds = f"{scan.seconds:.1f} s"
    if num_functions >= 100:
        seconds += f", {1000 * scan.seconds / num_functions:.1f} s per 1,000 functions"
    lines = [
        *_table_of(scan, top),
        f"{num_flagged:,} of {num_functions:,} functions look {name}; edits: edited statements that cannot change it.",
        accuracy_text(scan.accuracy),
        *_left_out(scan),
        seconds,
        f"Report:      {done.page}",
    ]
    if done.sarif:
        lines.append(f"SARIF:       {done.sarif}")
    lines += [f"Certificate: {file}" for file in done.certificates]
    if fail_on is not None:
        at_least = f" with a verdict certified against {fail_on} or more edited statements" if fail_on else ""
        lines.append(f"--fail-on {fail_on}: {len(failing):,} functions look {name}{at_least}.")
    return lines


def _table_of(scan: "Scan", top: int) -> list[str]:
    """Returns a table of the most suspicious functions, and an empty line."""
    from agnncert_code.findings import amount

    rows = []
    for function in scan.functions[: max(top, 0)]:
        verdict = scan.name_of(function.label)
        name = function.name or "(no name)"
        rows.append([f"{function.score:.2f}", verdict, amount(function.edited), name, function.place])
    return [table(["score", "verdict", "edits", "function", "place"], rows), ""] if rows else []


def _left_out(scan: "Scan") -> list[str]:
    """Returns what was skipped or could not be parsed."""
    lines = [f"skipped: {place} {why}" for place, why in list(scan.skipped.items())[:MOST_SKIPPED]]
    if len(scan.skipped) > MOST_SKIPPED:
        lines.append(f"skipped: {len(scan.skipped) - MOST_SKIPPED:,} more, named in the report")
    if scan.partial_files:
        num_partial = len(scan.partial_files)
        files = f"{num_partial:,} files" if num_partial > 1 else "1 file"
        lines.append(f"{files} could be parsed only in part; the parsed statements voted.")
    return lines
