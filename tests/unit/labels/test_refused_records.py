"""Records of label votes that make no sense are refused, field by field."""

from dataclasses import fields

import numpy as np
import pytest

from agnncert.certificates.file import read_contents
from agnncert.errors import CertificateError
from agnncert.labels.record import LabelRecord
from tests.soundness.golden.make import FOLDER


@pytest.fixture(scope="module")
def stored():
    contents = read_contents(FOLDER / "labels-any.cert")
    return contents.evidence, contents.settings


def changed(array, place, value):
    other = array.copy()
    other.reshape(-1)[place] = value
    return other


ALTERED = {
    "a class beyond the last": ("label_of", lambda old, record: changed(old, 0, record.num_classes), "no class"),
    "a class below unknown": ("label_of", lambda old, record: changed(old, 0, -2), "label_of has an entry of -2"),
    "no whole vote": ("cap", lambda old, record: changed(old, 0, 0), "cap has an entry of 0"),
    "a free label": ("price", lambda old, record: changed(old, 0, 0), "price has an entry of 0"),
    "other candidates": ("candidates", lambda old, record: "some", "called otherwise"),
    "other ids": ("ids", lambda old, record: "names", "called otherwise"),
    "one class": ("classes", lambda old, record: 1, "out of range"),
    "no rank": ("rank", lambda old, record: 0, "out of range"),
}


@pytest.mark.parametrize(("name", "alter", "said"), ALTERED.values(), ids=ALTERED)
def test_a_field_out_of_its_range_is_refused(stored, name, alter, said) -> None:
    tensors, settings = stored
    record = LabelRecord.load(tensors, settings)
    where = tensors if name in tensors else settings
    value = alter(where[name], record)
    other = {**where, name: value}
    with pytest.raises(CertificateError, match=said):
        LabelRecord.load(other if where is tensors else tensors, settings if where is tensors else other)


def test_a_field_too_many_or_too_few_is_refused(stored) -> None:
    tensors, settings = stored
    assert {*tensors, *settings} == {each.name for each in fields(LabelRecord)}
    with pytest.raises(CertificateError):
        LabelRecord.load({**tensors, "more": np.zeros(1)}, settings)
    for name in ("price", "audited"):
        with pytest.raises(CertificateError):
            LabelRecord.load({key: value for key, value in tensors.items() if key != name}, settings)
    with pytest.raises(CertificateError):
        LabelRecord.load(tensors, {key: value for key, value in settings.items() if key != "box"})
