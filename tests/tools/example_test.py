#!/usr/bin/env python3
"""The README's example is tools/example/main.cc between its marks, and it runs.

    example_test.py PROGRAM      (from the root of the tree; PROGRAM is the built example)
"""

import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

PROGRAM = ""
CODE_LINES_MAX = 20


def between(path, begin, end):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = re.search(rf"{re.escape(begin)}\n(.*?)[ \t]*{re.escape(end)}", text, re.DOTALL)
    assert found, f"{path} has no '{begin}' … '{end}'"
    return found.group(1)


def source_block():
    return textwrap.dedent(between("tools/example/main.cc", "// README: begin", "// README: end"))


class ExampleTest(unittest.TestCase):
    def test_readme_shows_the_program(self):
        readme = between("README.md", "<!-- example: begin -->", "<!-- example: end -->")
        block = re.search(r"```cpp\n(.*?)```", readme, re.DOTALL)
        self.assertIsNotNone(block, "README.md has no ```cpp block between the marks")
        self.assertEqual(block.group(1), source_block())

    def test_it_is_short(self):
        code = [line for line in source_block().splitlines()
                if line.strip() and not line.strip().startswith("//")]
        self.assertLessEqual(len(code), CODE_LINES_MAX)

    def test_it_runs_and_goes_on_where_it_was(self):
        with tempfile.TemporaryDirectory() as directory:
            ids = []
            for _ in range(2):
                result = subprocess.run([PROGRAM, directory], capture_output=True, text=True,
                                        check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                found = re.fullmatch(
                    r"trajectory (\d+), obs \[64, 4\], later \[64, 4\], returns \[64\], "
                    r"(\d+) priorities set\n", result.stdout)
                self.assertIsNotNone(found, result.stdout)
                ids.append(int(found.group(1)))
                self.assertEqual(int(found.group(2)), 64)
            self.assertGreater(ids[1], ids[0])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
