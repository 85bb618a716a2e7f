"""Writes the results page, its pictures and its tables: ``python -m experiments.documentation``."""

from experiments.documentation import page
from experiments.documentation.pictures import PICTURES, draw
from experiments.documentation.tables import TABLES, as_csv


def main() -> None:
    """Writes everything."""
    page.FOLDER.mkdir(exist_ok=True)
    for name, table in TABLES.items():
        (page.FOLDER / f"{name}.csv").write_text(as_csv(table()), encoding="utf-8")
    for picture in PICTURES:
        draw(picture(), page.FOLDER)
    page.PAGE.write_text(page.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
