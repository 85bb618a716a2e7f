"""Checks how many targets a file says cannot get a label."""

from agnncert.verifier.file_checker import FileChecker


def wrong_exclusions(checker: FileChecker) -> list[str]:
    """Returns what is wrong with the stated numbers of targets that cannot get a label."""
    contents = checker.contents
    classes = contents.settings.get("num_classes")
    wrong = []
    for budget, numbers in zip(contents.budgets, contents.excluded, strict=True):
        if numbers and classes not in (None, len(numbers)):  # before work that grows with all classes
            wrong.append(f"{len(numbers)} numbers of targets that cannot get a label are stated for {classes} classes")
        elif numbers and list(numbers) != (~checker.possible(budget)).sum(axis=0).tolist():
            wrong.append(f"the stated numbers of targets that {budget} gives no label do not follow from the evidence")
    return wrong
