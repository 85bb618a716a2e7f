"""The blocks of the tutorial about bots are parts of the script that the tests run."""

import re

from tests.support.paths import PROJECT


def test_every_block_of_the_tutorial_is_in_the_script() -> None:
    page = (PROJECT / "docs" / "tutorials" / "bots.md").read_text("utf-8")
    script = (PROJECT / "examples" / "bots.py").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)\n```", page, re.DOTALL)
    assert len(blocks) == 7
    assert [block for block in blocks if block not in script] == []
