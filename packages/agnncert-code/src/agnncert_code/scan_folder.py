"""A scan with everything that it leaves in its folder: certificates, the page, the verdicts, SARIF if it is wanted."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agnncert.cli.folder import RunFolder
from agnncert.cli.inputs import file_name
from agnncert.cli.settings import ModelSettings
from agnncert.errors import SettingsError
from agnncert.progress import OnProgress
from agnncert.storage import write_atomic
from agnncert_code.budgets import edits
from agnncert_code.detector import detector_of_run
from agnncert_code.findings import Scan
from agnncert_code.page import write_scan_page
from agnncert_code.sarif import write_sarif
from agnncert_code.scanner import SHOWN, scan_with
from agnncert_code.syntax import Language

VERDICTS = "scan.json"
PAGE = "report.html"
STATED = (1, 2, 3, 5, 10, 20)  # edited statements about which the file of a certificate makes statements


@dataclass(frozen=True)
class Scanned:
    """A finished scan and its files."""

    scan: Scan
    certificates: tuple[Path, ...]
    page: Path
    verdicts: Path
    sarif: Path | None


def scan_run(
    folder: str | Path,
    run: str | Path,
    out: str | Path | None = None,
    sarif: str | Path | None = None,
    named: ModelSettings | None = None,
    language: Language = "cpp",
    exclude: Sequence[str] = (),
    shown: int = SHOWN,
    workers: int = 1,
    on_progress: OnProgress | None = None,
) -> Scanned:
    """Scans a source tree with the model of a run and writes what came out.

    Args:
        folder: The tree, or one file.
        run: The folder of a run that was trained on functions.
        out: Folder for the certificate, the page and the verdicts; ``runs/scan-NAME`` when not given. An earlier scan
            in it is replaced.
        sarif: A file for the flagged functions as SARIF.
        named: Other groups or another vote than those of the run; its model, which is required if it is code.
        language: The grammar.
        exclude: Patterns of paths below the folder that are passed over.
        shown: Functions whose text and votes the page shows.
        workers: Processes that read files.
        on_progress: Called after each file.
    """
    place = Path("runs", f"scan-{file_name(Path(folder).resolve().name) or 'tree'}") if out is None else Path(out)
    _require_free(place)
    detector = detector_of_run(run, named)
    try:
        scan = scan_with(detector, folder, language, exclude, shown, workers, on_progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was written; the same command begins anew.") from None
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("certificate*.cert"):
        old.unlink()
    names = ["certificate.cert"] if len(scan.certificates) == 1 else _numbered(len(scan.certificates))
    certificates = tuple(place / name for name in names)
    for certificate, file in zip(scan.certificates, certificates, strict=True):
        certificate.save(file, [edits(replaced=count, flows=detector.flows) for count in STATED])
    page = write_scan_page(scan, place / PAGE, [str(file) for file in certificates], detector.name)
    written = None if sarif is None else write_sarif(scan, sarif)
    write_atomic(place / VERDICTS, json.dumps(scan.to_json(), indent=1) + "\n")
    return Scanned(scan, certificates, page, place / VERDICTS, written)


def _numbered(count: int) -> list[str]:
    return [f"certificate-{k}.cert" for k in range(1, count + 1)]


def _require_free(place: Path) -> None:
    """Refuses a folder that holds anything but an earlier scan."""
    if place.exists() and not place.is_dir():
        raise SettingsError(f"{place} is a file: choose another --out.")
    if RunFolder(place).exists:
        raise SettingsError(f"{place} is the folder of a run, which a scan must not replace: choose another --out.")
    if place.is_dir() and any(place.iterdir()) and not (place / VERDICTS).is_file():
        raise SettingsError(f"{place} is not empty, and not the folder of a scan: choose another --out.")
