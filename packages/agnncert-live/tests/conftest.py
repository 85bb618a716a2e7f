"""Fixtures for tests of live graphs."""

import pytest

from tests.support.live import one_audit_each


@pytest.fixture(scope="module")
def one_audit():
    """For tests that begin again and again with the same model and graph, and ask nothing about the audit."""
    with one_audit_each():
        yield
