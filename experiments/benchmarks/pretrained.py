"""Makes the trained models that come with the package (src/agnncert/models/weights).

python -m experiments.benchmarks.pretrained [DATASET …] --root .cache/data --runs .cache/pretrained

Each is what ``agnncert train`` makes with its defaults for the dataset, but for what stands in FIT; the runs go on where they were stopped. Prints
the digests that belong into src/agnncert/models/bundled.py.
"""

import argparse
from pathlib import Path

from agnncert.cli.settings import TrainSettings
from agnncert.cli.train_step import train_run
from agnncert.models.io import FOLDER, load_description, load_model, save_model

GROUPS = {"digits-knn": 60, "proteins": None, "pubmed": None}  # digits as in the demo; None: what is usual
FIT = {"proteins": {"epochs": 12}}  # more brings little, and takes half an hour


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", choices=[*GROUPS, []], help="all when not given")
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--runs", type=Path, default=Path(".cache/pretrained"))
    args = parser.parse_args()
    for name in args.datasets or GROUPS:
        settings = TrainSettings(
            data=name,
            root=args.root,
            model="gcn",
            division="node",
            groups=GROUPS[name],
            references=False,
            fit=FIT.get(name, {}),
        )
        trained = train_run(settings, args.runs / name)
        facts = load_description(trained.folder.weights)["provenance"]
        facts["settings"].pop("root", None)  # a place on the machine that trained
        file = save_model(load_model(trained.folder.weights), FOLDER / name, facts)
        print(f'    "{name}": "{load_description(file)["sha256"]}",', trained.measured)


if __name__ == "__main__":
    main()
