"""What follows from graphs and models alone is computed once for all forgeries that are tried on them."""

import pytest

from ..support.remembering import remembering


@pytest.fixture(scope="module", autouse=True)
def remember():
    with remembering():
        yield
