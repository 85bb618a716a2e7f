"""Writes every number that the documentation shows of the results: ``python -m experiments.documentation``."""

from experiments.benchmarks import first_case, parts, scale, taught
from experiments.documentation import guides, page
from experiments.documentation.pictures import PICTURES, draw
from experiments.documentation.tables import TABLES, as_csv


def main() -> None:
    """Writes the results page with its pictures and tables, and the blocks of all other pages."""
    page.FOLDER.mkdir(exist_ok=True)
    for name, table in TABLES.items():
        (page.FOLDER / f"{name}.csv").write_text(as_csv(table()), encoding="utf-8")
    for picture in PICTURES:
        draw(picture(), page.FOLDER)
    page.PAGE.write_text(page.text(), encoding="utf-8")
    first_case.main()
    scale.main()
    parts.main()
    taught.PAGE.write_text(taught.filled(taught.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for file in guides.PAGES:
        text = file.read_text(encoding="utf-8")
        if guides.filled(text) != text:
            file.write_text(guides.filled(text), encoding="utf-8")


if __name__ == "__main__":
    main()
