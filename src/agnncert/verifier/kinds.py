"""Which class checks which kind of certificate file.

It is a subclass of :class:`agnncert.verifier.file_checker.FileChecker` and shares no code with what makes such files.
"""

import reprlib

from agnncert.addons import ADD_ON_KINDS, addons
from agnncert.certificates.file import Contents
from agnncert.errors import CertificateError, missing
from agnncert.verifier.file_checker import FileChecker


def checker_of(kind: str) -> type[FileChecker]:
    """Returns the class that checks files with this kind of evidence.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
        CertificateError: Nothing here knows the kind.
    """
    point = addons("agnncert.verifier").get(kind)
    if point is not None:
        checker: type[FileChecker] = point.load()
        return checker
    if kind in ADD_ON_KINDS:
        raise missing(*ADD_ON_KINDS[kind])
    known = ", ".join(sorted({*addons("agnncert.verifier"), *ADD_ON_KINDS}))
    raise CertificateError(f"unknown kind of evidence {reprlib.repr(kind)}: expected {known}.")


def checked(contents: Contents) -> FileChecker:
    """Returns the checker of a file's kind, which has read its evidence.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
        CertificateError: Nothing here knows the kind, or the evidence is damaged.
    """
    return checker_of(contents.kind)(contents)
