"""Breaks every certificate and prints what was certified, what was done and why the rule is wrong."""

import importlib

MODULES = (
    "agnncert_hash",
    "agnncert_skipped",
    "gnncert_salted",
    "gnncert_degrees",
    "auditvotes_pairs",
    "pgnncert_clipping",
    "rs_noise",
    "sparse_joint",
    "birs_test",
    "birs_sampler",
)


def main() -> None:
    """Prints all of them."""
    for name in MODULES:
        broken = importlib.import_module(f"experiments.unsound.{name}").demonstrate()
        print(f"{broken.method}: {'REFUTED' if broken.is_false else 'not refuted'} (experiments/unsound/{name}.py)")
        print(f"  rule       {broken.rule}")
        print(f"  certified  {broken.certified}")
        print(f"  attack     {broken.attack}")
        print(f"  label      {broken.before} became {broken.after}")
        print(f"  because    {broken.why}\n")


if __name__ == "__main__":
    main()
