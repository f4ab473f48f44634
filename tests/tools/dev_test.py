#!/usr/bin/env python3
"""tools/dev: what it shows of tests that pass (the kills by phase), and what it refuses.

It runs on a small tree of its own, whose "tests" print.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
enable_testing()
add_test(NAME KillTest.All COMMAND printf "%8d kills at %s\\n" 64 random 12 recovery_cut)
add_test(NAME OtherTest.All COMMAND ${CMAKE_COMMAND} -E echo "nothing of note")
"""
PRESETS = """{"version": 6, "configurePresets": [{"name": "release", "generator": "Ninja",
  "binaryDir": "${sourceDir}/build/release"}]}"""


class DevTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        os.mkdir(os.path.join(self.root, "tools"))
        shutil.copy(os.path.join(ROOT, "tools", "dev"), os.path.join(self.root, "tools", "dev"))
        for name, text in (("CMakeLists.txt", CMAKE), ("CMakePresets.json", PRESETS)):
            with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
                file.write(text)
        # Whatever packages are missing: a test installs none.
        os.mkdir(os.path.join(self.root, "bin"))
        query = os.path.join(self.root, "bin", "dpkg-query")
        with open(query, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho installed\n")
        os.chmod(query, 0o755)

    def run_dev(self, *arguments):
        path = os.path.join(self.root, "bin") + os.pathsep + os.environ["PATH"]
        return subprocess.run(["tools/dev", *arguments], cwd=self.root,
                              env={**os.environ, "PATH": path}, capture_output=True, text=True,
                              check=False)

    def run_tests(self, *arguments):
        result = self.run_dev("test", "release", *arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_kills_by_phase_are_shown(self):
        shown = self.run_tests()
        self.assertIn("the kill test, by phase:\n      64 kills at random\n"
                      "      12 kills at recovery_cut\n", shown)
        self.assertNotIn("nothing of note", shown)
        self.assertTrue(shown.endswith("100% tests passed, 0 tests failed out of 2\n"), shown)

    def test_nothing_is_shown_of_a_kill_test_that_did_not_run(self):
        self.assertIn("the kill test", self.run_tests("-R", "KillTest"))
        self.assertNotIn("the kill test", self.run_tests("-R", "OtherTest"))

    def test_an_argument_that_nobody_knows_is_refused(self):
        for arguments in (("nothing",), ("fmt", "--chek"), ("lint", "tidi"), ("test", "relase")):
            result = self.run_dev(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("tools/dev", result.stderr)


if __name__ == "__main__":
    unittest.main()
