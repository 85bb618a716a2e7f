"""The command for people with a source tree."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agnncert.cli.options import RUN, From, Json, SettingsFile
from agnncert.cli.screen import Screen, table
from agnncert.cli.settings import CertifySettings
from agnncert.errors import SettingsError

VERDICTS, READING, OUTPUT = "Verdicts", "Reading", "Output"


def scan(
    folder: Annotated[Path, typer.Argument(help="A folder with C or C++ files, or one file.", metavar="FOLDER")],
    *,
    run: Annotated[Path, typer.Option(help="The run folder that agnncert train big-vul left.", metavar="RUN")],
    top: Annotated[int, typer.Option(help="Functions to print.", metavar="N", rich_help_panel=OUTPUT)] = 20,
    texts: Annotated[
        int, typer.Option(help="Functions whose text and votes the page shows.", metavar="N", rich_help_panel=OUTPUT)
    ] = 50,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the page, the certificate and the verdicts; an earlier scan in it is replaced.",
            metavar="FOLDER", show_default="runs/scan-NAME", rich_help_panel=OUTPUT,
        ),
    ] = None,
    sarif: Annotated[
        Path | None,
        typer.Option(help="File for SARIF 2.1.0, which code hosts read.", metavar="FILE", rich_help_panel=OUTPUT),
    ] = None,
    fail_on: Annotated[
        int | None,
        typer.Option(
            help="Exit with status 1 if a function looks vulnerable and that verdict withstands at least N edited "
            "statements; 0: if any looks so.",
            metavar="N", show_default="never", rich_help_panel=VERDICTS,
        ),
    ] = None,
    named: Annotated[
        CertifySettings,
        From(
            "groups", "empty", "prior", "model",
            groups={"panel": VERDICTS, "shown_default": "that of the run", "help": "Number of subgraphs T, or inf."},
            empty={
                "panel": VERDICTS, "shown_default": "as the run",
                "help": "What empty subgraphs cast: abstain, or a class, by name or number.",
            },
            prior={
                "panel": VERDICTS, "metavar": "N,N", "shown_default": "as the run",
                "help": "Votes that the classes start with; 10,0: “vulnerable” has to be ahead by more than ten.",
            },
            model={"panel": RUN, "help": "The model of the run again, if it is package.module:factory."},
        ),
    ],
    language: Annotated[
        str, typer.Option(help="cpp, which reads most C too, or c.", rich_help_panel=READING)
    ] = "cpp",
    exclude: Annotated[
        list[str],
        typer.Option(
            default_factory=list, show_default=False, metavar="PATTERN", rich_help_panel=READING,
            help="Paths below the folder to pass over, such as test or 'vendor/*.c'. May be repeated.",
        ),
    ],
    workers: Annotated[
        int, typer.Option(help="Processes that read files.", metavar="N", rich_help_panel=READING)
    ] = 1,
    settings: SettingsFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Find functions that look vulnerable, and prove how many edited statements each verdict withstands.

    Reads every C and C++ file below a folder and scores each function with a trained model. Leaves a page with the text
    of the most suspicious functions beside the votes of their statements, the certificate, and all verdicts. Exit
    status: 0 done, 1 a function was found that --fail-on names.
    """
    from agnncert_code.scan_folder import scan_run

    if fail_on is not None and fail_on < 0:
        raise SettingsError(f"--fail-on {fail_on}: expected a whole number from 0 on.")
    if language not in ("cpp", "c"):
        raise SettingsError(f"--language {language}: expected cpp, which reads most C too, or c.")
    screen = Screen(json)
    with screen.following() as on_progress:
        done = scan_run(
            folder, run, out, sarif, named, language, exclude, texts, workers, on_progress  # type: ignore[arg-type]
        )  # fmt: skip
    found = done.scan
    failing = [] if fail_on is None else found.flagged if fail_on == 0 else found.withstanding(fail_on)
    outcome = {
        **found.to_json(), "flagged": len(found.flagged), "failing": len(failing), "report": done.page,
        "certificates": done.certificates, "verdicts": done.verdicts, "sarif": done.sarif,
    }  # fmt: skip
    screen.result(outcome, "\n".join(_lines(done, top, failing, fail_on)))
    raise typer.Exit(1 if failing else 0)


def _lines(done: Any, top: int, failing: Any, fail_on: int | None) -> list[str]:
    from agnncert_code.findings import amount

    found, name = done.scan, done.scan.name_of(done.scan.suspicious)
    rows = [
        [f"{one.score:.2f}", found.name_of(one.label), amount(one.edited), one.name or "(no name)", one.place]
        for one in found.functions[: max(top, 0)]
    ]
    lines = [table(["score", "verdict", "withstands", "function", "place"], rows), ""] if rows else []
    flagged, total = len(found.flagged), len(found.functions)
    lines.append(
        f"{flagged:,} of {total:,} functions look {name}; withstands: edited statements that cannot change it."
    )
    lines += [f"skipped: {place} {why}" for place, why in list(found.skipped.items())[:10]]
    if len(found.skipped) > 10:
        lines.append(f"skipped: {len(found.skipped) - 10:,} more, named in the report")
    if found.partial_files:
        several = f"{len(found.partial_files):,} files" if len(found.partial_files) > 1 else "1 file"
        lines.append(f"{several} could be parsed in part only; what could be was judged.")
    each = f", {1000 * found.seconds / total:.1f} s per 1,000 functions" if total >= 100 else ""
    lines.append(f"{found.seconds:.1f} s{each}")
    lines.append(f"Report:      {done.page}")
    lines += [f"SARIF:       {done.sarif}"] if done.sarif else []
    lines += [f"Certificate: {file}" for file in done.certificates]
    if fail_on is not None:
        at_least = f" and withstand {fail_on} or more edited statements" if fail_on else ""
        lines.append(f"--fail-on {fail_on}: {len(failing):,} functions look {name}{at_least}.")
    return lines
