"""What follows from graphs and models alone is computed once for all forgeries that are tried on them."""

import pytest

from tests.support.remembering import casting_once, remembering


@pytest.fixture(scope="module", autouse=True)
def remember():
    with remembering(), casting_once():
        yield
