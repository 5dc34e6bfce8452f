"""check_tree.py ROOT [PROGRAM…]: prints every breach of a rule in the tree; exits 1 if any.

The programs are ours: what the documents say of flags is held against their --help.
"""

import sys

from rules import RULES
from tree import Tree


def main():
    root, *programs = sys.argv[1:]
    tree = Tree(root, programs)
    breaches = [(rule.__name__, *breach) for rule in RULES for breach in rule(tree)]
    for rule, path, line, message in breaches:
        print(f"{path}:{line}: {message} [{rule}]")
    print(f"{len(tree.files)} files, {len(RULES)} rules, {len(breaches)} breaches")
    return 1 if breaches or not tree.files else 0


if __name__ == "__main__":
    sys.exit(main())
