"""Downloads the files of public datasets, and compares files with the published ones."""

import gzip
import hashlib
import logging
import os
import urllib.request
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from pickle import UnpicklingError
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

import numpy as np

from agnncert.datasets.catalog import SHA256, DatasetInfo, Source
from agnncert.datasets.fraud import assemble_cresci
from agnncert.errors import DatasetError

_log = logging.getLogger(__name__)
_SECONDS = 10  # without an answer, after which a download is given up
_FAILURES = (OSError, HTTPException, BadZipFile, KeyError, UnpicklingError)


def download(info: DatasetInfo, source: Source, root: Path) -> None:
    """Downloads the missing files of a dataset. They are moved into their folder after all of them have arrived.

    Args:
        info: The dataset.
        source: Its files.
        root: Folder with the datasets.

    Raises:
        DatasetError: A file cannot be downloaded. The message says where to put it by hand.
    """
    _log.info("downloading %s from %s", info.name, source.url)
    missing = source.missing(root)
    root.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(dir=root) as folder:
            draft = Path(folder)
            _fetch(source, missing, draft)
            _prepare(info, source, draft)
            downloaded = {path.name: path for path in draft.rglob("*")}
            source.raw(root).mkdir(parents=True, exist_ok=True)
            for file in missing:
                os.replace(downloaded[file], source.raw(root) / file)
    except _FAILURES as error:
        cause = getattr(error, "reason", None) or error or type(error).__name__
        raise DatasetError(
            f"{info.name} is not on this machine and cannot be downloaded ({cause}).\n"
            f"  missing: {', '.join(missing)}\n"
            f"  folder:  {source.raw(root)}\n"
            f"  source:  {source.url}\n"
            "Put the files into that folder, or pass root=... if they are elsewhere. "
            '"digits-knn", "digits-grid", "accounts-generated" and "circles-generated" need no download.'
        ) from error


def _fetch(source: Source, missing: list[str], folder: Path) -> None:
    """Downloads an archive and unpacks it, or downloads single files."""
    if source.url.endswith(".zip"):
        archive = folder / f"{source.folder}.zip"
        _fetch_file(source.url, archive)
        ZipFile(archive).extractall(folder)
        return
    for file in source.remote or missing:
        _fetch_file(source.url.format(file), folder / file)


def _fetch_file(url: str, path: Path) -> None:
    with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
        path.write_bytes(answer.read())


def _prepare(info: DatasetInfo, source: Source, folder: Path) -> None:
    """Makes the files of the dataset out of those of the source, where they differ."""
    if info.name == "cresci-15":
        assemble_cresci(folder)
    elif source.remote:
        for file, remote in zip(source.files, source.remote, strict=True):
            os.replace(folder / remote, folder / file)


def check_files(paths: Iterable[Path]) -> None:
    """Raises DatasetError if the content of a file differs from that of the published one, as far as it is known."""
    for path in paths:
        expected = SHA256.get(path.name.removesuffix(".gz"))
        if expected is not None and hashlib.sha256(_content(path)).hexdigest() != expected:
            raise DatasetError(
                f"{path} is not the published file (its sha256 differs), so it was not read; reading a pickle can run "
                "any code inside it. Delete it and load the dataset again."
            )


def _content(path: Path) -> bytes:
    """Returns the bytes of a file without compression, or of an npz file all arrays by name."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix != ".npz":
        return path.read_bytes()
    content = []
    with np.load(path) as arrays:
        for name in sorted(arrays.files):
            array = arrays[name]
            content.append(f"{name}:{array.dtype.str}:{array.shape};".encode() + array.tobytes())
    return b"".join(content)
