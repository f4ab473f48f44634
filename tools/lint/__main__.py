"""Checks the rules of the tree that neither compiler nor clang-format knows.

    python3 tools/lint [ROOT]

Prints "path:line: [rule] what is wrong" and exits 1 when there is anything to say. Each check_* of
code_rules and tree_rules is a rule; limits and exceptions are in config.py, with their reasons.
tests/tools/lint_test.py shows that each rule fires.
"""

import os
import sys

import code_rules
import tree_rules
from tree import Tree


def main(arguments):
    root = arguments[0] if arguments else os.path.join(os.path.dirname(__file__), "..", "..")
    tree = Tree(os.path.abspath(root))
    checks = [function for module in (code_rules, tree_rules)
              for name, function in vars(module).items() if name.startswith("check_")]
    for check in checks:
        check(tree)
    for path, line, rule, message in sorted(tree.findings):
        print(f"{path}:{line}: [{rule}] {message}")
    print(f"lint: {len(checks)} checks over {len(tree.paths)} files, "
          f"{len(tree.findings)} findings")
    return 1 if tree.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
