"""What all our HTML pages share: one file that needs no other, and a policy that lets no foreign script run."""

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import agnncert

HERE = Path(__file__).parent
_FONTS = {"Inter": "inter.woff2", "Source Serif 4": "source-serif-4.woff2"}


def fill_page(template: Path, values: dict[str, Any], *, script: str, style: str = "", policy: str = "") -> str:
    """Returns a page that needs no other file.

    Values are escaped, and a name of the template without a value is an error.

    Args:
        template: The template.
        values: What is filled into it, by name.
        script: The script of the page. No other script may run.
        style: Added to the style that all our pages have. Nothing by default.
        policy: Added to the content security policy. Nothing by default.
    """
    page: str = _template(template).render(
        **values,
        version=agnncert.__version__,
        policy=content_policy(script) + policy,
        fonts=Markup(font_faces()),
        style=Markup((HERE / "assets" / "style.css").read_text("utf-8") + style),
        script=Markup(script),
    )
    return page


@cache
def _template(file: Path) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(file.parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.get_template(file.name)


def own_scripts(*names: str) -> list[str]:
    """Returns the text of some of the scripts in ``assets``."""
    return [(HERE / "assets" / f"{name}.js").read_text("utf-8") for name in names]


def checker_script() -> str:
    """Returns the checker that is extracted from the Coq proofs, as a script: ``formal/browser`` makes it."""
    return (HERE / "vendor" / "checker.js").read_text("utf-8")


def theorem_script(page_rules: Mapping[str, str]) -> str:
    """Returns the script that defines ``THEOREMS``, from functions in JavaScript by the name of their theorem."""
    rules = [f"  {json.dumps(name)}: {rule}," for name, rule in page_rules.items()]
    return "\n".join(["const THEOREMS = {", *rules, "};", ""])


def font_faces() -> str:
    """Returns the fonts of all our pages, as CSS that needs no other file."""
    faces = []
    for family, file in _FONTS.items():
        data = base64.b64encode((HERE / "vendor" / file).read_bytes()).decode("ascii")
        faces.append(
            f'@font-face{{font-family:"{family}";font-weight:200 900;font-display:swap;'
            f'src:url("data:font/woff2;base64,{data}") format("woff2")}}\n'
        )
    return "".join(faces)


def content_policy(script: str) -> str:
    """Returns the content security policy: nothing is loaded and only our script runs, even if an escape is missing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def json_for_html(value: Any) -> str:
    r"""Returns JSON that stays inside its script element, whatever strings it holds.

    Example:
        >>> json_for_html("</script>")
        '"\\u003c/script\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
