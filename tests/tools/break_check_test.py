#!/usr/bin/env python3
"""tools/break_check tells a bug that the tests notice from one that they do not.

It runs on a small tree of its own, whose "tests" are commands chosen by GEARDB_BREAK.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
enable_testing()
if(GEARDB_BREAK STREQUAL "unbuildable")
  message(FATAL_ERROR "this bug breaks the build")
endif()
add_custom_target(test_programs)
set(pass ${CMAKE_COMMAND} -E true)
set(first ${pass})
set(second ${pass})
if(GEARDB_BREAK STREQUAL "noticed")
  set(first ${CMAKE_COMMAND} -E false)
elseif(GEARDB_BREAK STREQUAL "hangs")
  set(second ${CMAKE_COMMAND} -E sleep 600)
elseif(GEARDB_BREAK STREQUAL "crashes")
  set(second sh -c "kill -SEGV $$")
endif()
if(ALWAYS_FAILS)
  set(first ${CMAKE_COMMAND} -E false)
endif()
add_test(NAME SmallTest.First COMMAND ${first})
add_test(NAME SmallTest.Second COMMAND ${second})
"""
PRESETS = """{"version": 6, "configurePresets": [{"name": "break", "generator": "Ninja",
  "binaryDir": "${sourceDir}/build/break", "cacheVariables": {"ALWAYS_FAILS": "%s"}}]}"""
TABLE = """#define GEARDB_BREAK_TABLE(X) \\
  X(noticed, "SmallTest", "the first test fails") \\
  X(hangs, "SmallTest", "the second test never ends") \\
  X(crashes, "Second", "the second test dies") \\
  X(overlooked, "SmallTest", "nothing happens") \\
  X(elsewhere, "NoSuchTest", "no test has this name") \\
  X(unbuildable, "SmallTest", "it does not build")
"""


class BreakCheckTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        with open(os.path.join(ROOT, "tools", "break_check"), encoding="utf-8") as file:
            program = file.read()
        self.assertIn("TEST_TIMEOUT_S = 300", program)
        self.write("tools/break_check", program.replace("TEST_TIMEOUT_S = 300",
                                                        "TEST_TIMEOUT_S = 2"))
        self.write("CMakeLists.txt", CMAKE)
        self.write("CMakePresets.json", PRESETS % "OFF")
        self.write("base/break.h", TABLE)

    def write(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def check(self, *names):
        result = subprocess.run([sys.executable, os.path.join(self.root, "tools", "break_check"),
                                 *names], capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        return result.returncode, result.stdout

    def test_failing_crashing_and_hanging_tests_notice(self):
        status, output = self.check("noticed", "crashes", "hangs")
        self.assertEqual(status, 0, output)
        self.assertIn("without a bug: 2 tests pass", output)
        self.assertRegex(output, r"noticed +caught +by SmallTest.First")
        self.assertRegex(output, r"crashes +caught +by SmallTest.Second")
        self.assertRegex(output, r"hangs +caught +by SmallTest.Second")
        self.assertIn("3 of 3 named bugs caught", output)

    def test_all_is_the_whole_table_and_one_miss_fails(self):
        status, output = self.check("all")
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"overlooked +NOT caught +all 2 tests")
        self.assertRegex(output, r"elsewhere +NOT caught +no test matches 'NoSuchTest'")
        self.assertRegex(output, r"unbuildable +NOT caught +it does not build")
        self.assertIn("3 of 6 named bugs caught", output)

    def test_tests_that_fail_anyway_prove_nothing(self):
        self.write("CMakePresets.json", PRESETS % "ON")
        status, output = self.check("noticed")
        self.assertEqual(status, 1, output)
        self.assertIn("without any bug, 1 of 2 tests fail: SmallTest.First", output)

    def test_unknown_bug_is_refused_with_the_names(self):
        status, output = self.check("nonsense")
        self.assertEqual(status, 2, output)
        self.assertIn("noticed hangs crashes", output)


if __name__ == "__main__":
    unittest.main()
