#!/usr/bin/env python3
"""Each rule of tools/lint fires on a small tree that breaks it, and on no tree that does not.

A case is {files to add or replace in a clean tree: text} and what must be said, as
(rule, path, part of the message).
"""

import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINT = os.path.join(ROOT, "tools", "lint")

sys.path.insert(0, LINT)
import config  # pylint: disable=wrong-import-position,import-error

lint_program = importlib.util.spec_from_file_location("lint", os.path.join(LINT, "__main__.py"))
lint = importlib.util.module_from_spec(lint_program)
lint_program.loader.exec_module(lint)

PRESET_NAMES = ("release", "debug", "asan", "tsan", "fuzz", "break")
PRESETS = '{"configurePresets": [%s]}' % ", ".join(f'{{"name": "{n}"}}' for n in PRESET_NAMES)

# A tree without a finding. The files that exceptions are for must exist.
CLEAN = {
    "CMakeLists.txt": "geardb_layer(base)\ngeardb_layer(wal DEPENDS base)\n"
                      "geardb_layer(index DEPENDS base)\ngeardb_layer(kernels DEPENDS base)\n"
                      "geardb_layer(engine DEPENDS base wal index kernels)\n",
    "CMakePresets.json": PRESETS,
    "README.md": "# x\n\n    tools/dev quickstart\n    tools/dev test\n\n## More\n",
    ".ci/run": "tools/dev test\n",
    "base/word.h": "// Words.\n#pragma once\n#include <vector>\n",
    "base/word.cc": '#include "base/word.h"\n',
    "tests/base/word_test.cc": "TEST(WordTest, IsThere) { EXPECT_EQ(Word(), 1); }\n",
}


def lines(count):
    return "".join(f"int v{number};\n" for number in range(count))


class LintTest(unittest.TestCase):
    def findings(self, files):
        """Runs lint over the clean tree with `files` (None removes one): (status, output)."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**self.exceptions(), **CLEAN, **files}.items():
                if text is None:
                    continue
                os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            # Not as a program of its own, of which most would be Python's start.
            with contextlib.redirect_stdout(io.StringIO()) as output:
                status = lint.main([root])
            return status, output.getvalue()

    @staticmethod
    def exceptions():
        """The files of the allow list, with their tests."""
        files = {}
        places = [place for place in config.SYSTEM_HEADERS if not place.endswith("/")]
        for path in [*(path for _, path, _ in config.ALLOWED), *places]:
            files[path] = "// Allowed.\n#pragma once\n"
            if path.endswith("_test.cc"):
                files[path] = "TEST(AllowedTest, IsThere) { F(); }\n"
            elif path.endswith(".cc"):
                files[f"tests/{path[:-3]}_test.cc"] = "TEST(AllowedTest, IsThere) { F(); }\n"
        return files

    def assert_fires(self, rule, path, part, files):
        status, output = self.findings(files)
        self.assertEqual(status, 1, output)
        hits = [line for line in output.splitlines()
                if line.startswith(path + ":") and f"[{rule}]" in line and part in line]
        self.assertTrue(hits, f"no [{rule}] '{part}' for {path} in:\n{output}")

    def assert_clean(self, files):
        status, output = self.findings(files)
        self.assertEqual(status, 0, output)

    def word(self, code, path="base/word.h"):
        return {path: "// Words.\n#pragma once\n" + code}

    def test_clean_tree_has_no_finding(self):
        self.assert_clean({})

    def test_a_layer_sees_only_the_layers_below_it(self):
        for path, header in (("base/word.h", "wal/x.h"), ("wal/word.h", "index/x.h"),
                             ("index/word.h", "engine/x.h"), ("kernels/word.h", "wal/x.h"),
                             ("tools/geardb/word.h", "engine/internal/x.h"),
                             ("tools/geardb/word.h", "wal/drain.h"),
                             ("tools/geardb/word.h", "index/selector.h"),
                             ("tools/bench/word.h", "engine/internal/x.h")):
            with self.subTest(path=path, header=header):
                self.assert_fires("layers", path, header,
                                  self.word(f'#include "{header}"\n', path))
        self.assert_clean(self.word('#include "wal/log_reader.h"\n', "tools/geardb/word.h"))
        self.assert_clean(self.word('#include "index/selector.h"\n', "tools/bench/word.h"))
        self.assert_clean(self.word('#include "wal/x.h"\n', "engine/internal/word.h"))

    def test_public_headers_see_public_headers_only(self):
        for header in ("wal/x.h", "engine/internal/x.h", "engine/x_generated.h"):
            with self.subTest(header=header):
                self.assert_fires("layers", "engine/word.h", header,
                                  self.word(f'#include "{header}"\n', "engine/word.h"))
        self.assert_fires("layers", "base/word.h", "break.h",
                          self.word('#include "base/break.h"\n'))

    def test_angle_brackets_hide_no_header_of_the_tree(self):
        for path, header in (("wal/drain.cc", "engine/internal/core.h"),
                             ("tools/geardb/word.h", "engine/internal/core.h"),
                             ("engine/word.h", "wal/x.h"), ("base/word.h", "base/break.h"),
                             ("engine/word.h", "base/break.h"), ("wal/word.h", "tools/x.h")):
            with self.subTest(path=path, header=header):
                files = self.word(f"#include <{header}>\n", path)
                files["tests/wal/drain_test.cc"] = CLEAN["tests/base/word_test.cc"]
                self.assert_fires("layers", path, header.split("/")[-1], files)
                self.assert_fires("includes", path, f'write "{header}"', files)
        for header in ("vector", "sys/stat.h", "flatbuffers/flatbuffers.h", "../x",
                       "rdma/rdma_cma.h"):
            with self.subTest(header=header):
                status, output = self.findings(self.word(f"#include <{header}>\n"))
                self.assertEqual("[includes]" in output, header == "../x", output)
                self.assertEqual(status, int(header != "vector"))

    def test_includes_are_written_in_one_way(self):
        for line, rule, part in (
                ('#include "base/../engine/internal/core.h"', "layers", "engine/internal/core.h"),
                ('#include "base/../engine/internal/core.h"', "includes", "without '.' and '..'"),
                ('#include <base/./word.h>', "includes", "without '.' and '..'"),
                ('#include "../wal/x.h"', "includes", "without '.' and '..'"),
                ('#include "base//word.h"', "includes", "without '.' and '..'"),
                ('#include "/usr/x.h"', "includes", "without '.' and '..'"),
                ('#import "wal/x.h"', "includes", "#import: write #include"),
                ('#import "wal/x.h"', "layers", "wal/x.h"),
                ('#include_next "wal/x.h"', "layers", "wal/x.h"),
                ('%:include "wal/x.h"', "layers", "wal/x.h"),
                ('#\\\n include "wal/x.h"', "layers", "wal/x.h"),
                ('#/* */include "wal/x.h"', "layers", "wal/x.h"),
                ("#include CORE_HEADER", "includes", "'CORE_HEADER' names no file"),
                ('#include "base/word.inc"', "includes", "is no header"),
                ('#include "base/word.cc"', "includes", "is no header")):
            with self.subTest(line=line):
                self.assert_fires(rule, "base/word.h", part, self.word(line + "\n"))
        self.assert_fires("includes", "tests/base/word_test.cc", 'write "base/word.h"', {
            "tests/base/word_test.cc": "#include <base/word.h>\nTEST(WordTest, A) { F(); }\n"})

    def test_files_have_the_names_that_the_rules_look_for(self):
        for path in ("base/word.hpp", "wal/word.inc", "engine/word.cpp", "tools/geardb/word.cxx",
                     "tests/base/word.ipp", "base/word.c", "base/word.C"):
            with self.subTest(path=path):
                self.assert_fires("file_kinds", path, "are called", {path: "// Words.\n"})
        self.assert_clean({"tests/fuzz/record_fuzz.cc": "// Records.\n",
                           "tests/fuzz/corpus/record/seed.c": "x"})

    def test_commented_includes_do_not_count(self):
        self.assert_clean(self.word('// #include "wal/x.h"\n/* #include "wal/y.h" */\n'))

    def test_foreign_headers_stay_in_their_place(self):
        for header in ("cuda_runtime.h", "rocksdb/db.h", "gtest/gtest.h", "xxhash.h", "cassert",
                       "iostream", "string.h"):
            with self.subTest(header=header):
                self.assert_fires("system_headers", "base/word.h", header,
                                  self.word(f"#include <{header}>\n"))

    def test_a_header_on_no_list_is_foreign(self):
        for path, line in (("base/types.h", "<flatbuffers/flatbuffers.h>"),
                           ("engine/table.h", "<flatbuffers/flatbuffers.h>"),
                           ("engine/table.h", "<sys/stat.h>"), ("wal/word.h", "<CLI/CLI.hpp>"),
                           ("wal/word.h", "<Eigen/Dense>"), ("wal/word.h", "<jemalloc/jemalloc.h>"),
                           ("index/word.h", "<sys/mman.h>"), ("index/word.h", "<immintrin.h>"),
                           ("index/index_memory.h", "<sys/mman.h>"),
                           ("kernels/word.h", "<bits/stdc++.h>"),
                           ("engine/internal/arena_other.h", "<sys/mman.h>"),
                           ("tools/quickstart/word.h", "<benchmark/benchmark.h>"),
                           ("tests/base/word.h", "<Eigen/Core>"),
                           ("tests/base/word.h", '"sys/uio.h"')):
            with self.subTest(path=path, line=line):
                self.assert_fires("system_headers", path, line[1:-1],
                                  self.word(f"#include {line}\n", path))

    def test_a_header_on_the_list_of_its_place_is_not(self):
        allowed = self.exceptions()
        for path, header in (("base/env_posix.cc", "sys/mman.h"), ("base/hash.cc", "xxhash.h"),
                             ("index/index_memory.cc", "sys/mman.h"),
                             ("tools/geardb/word.h", "CLI/CLI.hpp"),
                             ("tools/quickstart/word.h", "Eigen/Core"),
                             ("tools/bench/word.h", "sys/statfs.h"),
                             ("tests/base/word.h", "gtest/gtest.h"), ("wal/word.h", "random"),
                             ("tests/base/word.h", "unistd.h")):
            with self.subTest(path=path, header=header):
                self.assert_clean({path: allowed.get(path, "// Words.\n#pragma once\n")
                                   + f"#include <{header}>\n"})

    def test_a_place_on_the_list_exists(self):
        self.assert_fires("allow_list", "tools/lint/config.py", "kernels/convert.cc",
                          {"kernels/convert.cc": None})

    def test_geardb_alone_reads_the_log(self):
        for header in ("wal/log_reader.h", "engine/internal/record_body.h"):
            with self.subTest(header=header):
                files = self.word(f'#include "{header}"\n', "tools/quickstart/word.h")
                self.assert_fires("layers", "tools/quickstart/word.h", header, files)
                self.assert_clean(self.word(f'#include "{header}"\n', "tools/geardb/word.h"))

    def test_nobody_declares_what_it_must_not_see(self):
        for path, code, name in (
                ("wal/word.h", "namespace geardb::engine {\nclass Core;\n}\n", "engine"),
                ("wal/word.h", "namespace geardb {\nnamespace index { class T; }\n}\n", "index"),
                ("index/word.h", "namespace geardb::kernels::x {\n}\n", "kernels"),
                ("base/word.h", "namespace [[maybe_unused]] wal\n{\n}\n", "wal"),
                ("engine/word.h", "namespace geardb::wal {\nclass LogWriter;\n}\n", "wal"),
                ("tools/geardb/word.h", "namespace geardb::engine {\nclass C;\n}\n", "engine")):
            with self.subTest(path=path, code=code):
                self.assert_fires("namespaces", path, f"'{name}'", self.word(code, path))
        for path, code in (("wal/word.h", "namespace geardb::wal {\n}\n"),
                           ("engine/word.h", "namespace geardb::engine {\nclass Core;\n}\n"),
                           ("engine/internal/word.h", "namespace geardb::wal {\nclass W;\n}\n"),
                           ("tools/geardb/word.h", "namespace fb = engine::fb;\n"),
                           ("tools/geardb/word.h", "namespace geardb::cli {\n}\n")):
            with self.subTest(path=path, code=code):
                self.assert_clean(self.word(code, path))

    def test_a_quote_in_a_character_hides_nothing(self):
        hidden = '#include "engine/internal/core.h"\n/* The end of a comment. */\n'
        for before in ("""constexpr char8_t kQuote = u8'"'; const char* x = "/*";\n""",
                       """auto kQuote = u8'"'; const char* x = "/*"; int y = 1'0; // '\n""",
                       """constexpr wchar_t kQuote = L'"'; const char* x = "/*";\n""",
                       """constexpr auto kQuote = u8R"x("/*)x"; auto y = "/*";\n""",
                       """int x = 0xA'B'C; char c = '"'; const char* y = "/*";\n""",
                       """int x = 1'000; char c = '\\''; const char* y = "/*";\n"""):
            with self.subTest(before=before):
                self.assert_fires("layers", "index/word.h", "engine/internal/core.h",
                                  self.word(before + hidden, "index/word.h"))

    def test_a_schema_sees_only_the_layers_below_it(self):
        for path, line in (("wal/x.fbs", 'include "engine/operations.fbs";'),
                           ("index/x.fbs", 'include  "wal/x.fbs";'),
                           ("wal/x.fbs", 'include "wal/../engine/operations.fbs";'),
                           ("wal/x.fbs", 'include "../engine/operations.fbs";')):
            with self.subTest(path=path, line=line):
                self.assert_fires("schemas", path, "must not include", {path: f"// X.\n{line}\n"})
        self.assert_clean({"wal/x.fbs": 'include "wal/y.fbs";\n// include "engine/x.fbs";\n',
                           "engine/x.fbs": 'include "wal/y.fbs";\n'})

    def test_layers_link_what_the_layer_table_says(self):
        for path, call, part in (
                ("CMakeLists.txt", "target_link_libraries(wal PUBLIC index)", "wal must not link"),
                ("CMakeLists.txt", "target_link_libraries(base\n  PRIVATE base engine)", "engine"),
                ("CMakeLists.txt", "TARGET_LINK_LIBRARIES( wal PUBLIC index )", "index"),
                ("CMakeLists.txt", "target_link_libraries(wal PUBLIC $<LINK_ONLY:index>)", "index"),
                ("CMakeLists.txt", "target_link_libraries(wal PUBLIC PkgConfig::JEMALLOC)",
                 "PkgConfig::JEMALLOC"),
                ("CMakeLists.txt", "target_link_libraries(wal PUBLIC ${other})", "${other}"),
                ("CMakeLists.txt", "target_link_libraries(${layer} PUBLIC ${other})", "variable"),
                ("cmake/layers.cmake", "target_link_libraries(${name} PUBLIC index)", "index"),
                ("wal/CMakeLists.txt", "target_link_libraries(wal PUBLIC engine)", "engine"),
                ("CMakeLists.txt", "link_libraries(index)", "name one"),
                ("CMakeLists.txt", "set_target_properties(wal PROPERTIES LINK_LIBRARIES index)",
                 "write target_link_libraries"),
                ("CMakeLists.txt",
                 "set_property(TARGET wal APPEND PROPERTY INTERFACE_LINK_LIBRARIES index)",
                 "write target_link_libraries")):
            with self.subTest(path=path, call=call):
                self.assert_fires("links", path, part,
                                  {path: CLEAN.get(path, "") + call + "\n"})
        self.assert_clean({
            "CMakeLists.txt": CLEAN["CMakeLists.txt"] + "# target_link_libraries(wal index)\n"
                              "target_link_libraries(engine PUBLIC wal Threads::Threads)\n"
                              "target_link_libraries(other PRIVATE engine Eigen3::Eigen)\n",
            "cmake/layers.cmake": "target_link_libraries(${name} PUBLIC ${arg_DEPENDS})\n"})

    def test_banned_calls(self):
        for rule, code in (
                ("throw", "throw 1;"), ("assert", "assert(x);"), ("exit", "std::abort();"),
                ("exit", "exit(1);"), ("print", 'printf("x");'), ("print", "std::cerr << 1;"),
                ("files", "::open(x, 0);"), ("files", "fdatasync(fd);"),
                ("files", "std::ofstream out;"), ("files", "::rename(a, b);"),
                *(("files", f"{name}(a, b);") for name in (
                    "open", "openat", "unlink", "rename", "std::remove", "mkdir", "truncate",
                    "mkstemp", "::close", "::mmap", "syscall")),
                *(("print", f"{name}(a, stderr);") for name in (
                    "fwrite", "std::fwrite", "dprintf", "vfprintf", "fputc", "putchar", "syslog")),
                *(("exit", f"{name}(6);") for name in (
                    "raise", "std::raise", "std::_Exit", "_Exit", "::kill", "__builtin_trap")),
                *(("random", f"{name}();") for name in (
                    "drand48", "lrand48", "srandom", "::random", "rand_r", "getrandom")),
                *(("generator", f"std::{name} g;") for name in (
                    "default_random_engine", "mt19937_64", "minstd_rand0", "ranlux48", "knuth_b",
                    "mersenne_twister_engine<int>", "normal_distribution<double>")),
                *(("sleep", f"{name}(a);") for name in (
                    "clock_nanosleep", "poll", "::poll", "ppoll", "select", "epoll_wait")),
                ("using_namespace", "using namespace std;"),
                ("using_namespace", "namespace s = std;"),
                ("random", "rand();"), ("random", "std::random_device device;"),
                ("generator", "std::mt19937 g;"), ("sleep", "std::this_thread::sleep_for(x);"),
                ("wall_clock", "std::chrono::system_clock::now();"), ("std_mutex", "std::mutex m;"),
                *(("std_mutex", f"{name} x;") for name in (
                    "std::shared_mutex", "std::timed_mutex", "std::shared_timed_mutex",
                    "std::recursive_mutex", "std::recursive_timed_mutex", "pthread_mutex_t",
                    "std::once_flag", "std::counting_semaphore<4>", "std::binary_semaphore",
                    "std::latch", "std::barrier<>", "std::shared_lock", "pthread_rwlock_t")),
                ("std_mutex", "std::call_once(flag, f);"),
                ("detach", "thread.detach();"), ("using_namespace", "\nusing namespace std;")):
            with self.subTest(code=code):
                self.assert_fires(rule, "base/word.h", "", self.word(f"void F() {{ {code} }}\n"))

    def test_words_that_only_look_like_banned_calls(self):
        self.assert_clean(self.word(
            "// throw, printf(x), std::mutex\n"
            'const char* text = "throw assert(1) rand()";\n'
            "static_assert(sizeof(int) == 4);\n"
            "void G() { file->rename(a); log.printf(x); operand(3); Open(x); pool.open(x); }\n"
            "void H() { using namespace word_internal; random(); generator.poll(); }\n"
            "bool open() const; int poll();\n"))

    def test_tests_do_not_sleep(self):
        self.assert_fires("sleep", "tests/base/word_test.cc", "sleep_for", {
            "tests/base/word_test.cc": "TEST(WordTest, A) { std::this_thread::sleep_for(x); }\n"})

    def test_banned_names(self):
        self.assert_fires("names", "base/util.h", "util", self.word("", "base/util.h"))
        self.assert_fires("names", "base/page_info.h", "info", self.word("", "base/page_info.h"))
        for code in ("class PageManager {};", "struct Info {};", "namespace helpers {}",
                     "int F(const void* data, int n);", "int info = 3;"):
            with self.subTest(code=code):
                self.assert_fires("names", "base/word.h", "says nothing", self.word(code + "\n"))
        self.assert_clean(self.word("struct Database {}; auto F(B b) { return b.data(); }\n"))

    def test_long_files_lines_and_functions(self):
        self.assert_fires("file_size", "base/word.h", "503 lines", self.word(lines(501)))
        self.assert_fires("columns", "base/word.h", "101 columns",
                          self.word("// " + "x" * 98 + "\n"))
        self.assert_clean(self.word("// " + "x" * 97 + "\n"))
        body = "namespace n {{\nclass A {{\n  int Long(int x) const {{\n{}  }}\n}};\n}}\n"
        self.assert_fires("function_size", "base/word.h", "Long has 71 lines",
                          self.word(body.format(lines(69))))
        self.assert_clean(self.word(body.format(lines(68))))
        self.assert_clean(self.word("namespace n {\nstruct A {\n" + lines(200) + "};\n}\n"))
        self.assert_clean(self.word("constexpr int kTable[] = {\n" + "  1,\n" * 200 + "};\n"))

    def test_long_test_and_constructor_count_as_functions(self):
        self.assert_fires("function_size", "tests/base/word_test.cc", "TEST has", {
            "tests/base/word_test.cc": "TEST(WordTest, Long) {\n" + lines(80) + "}\n"})
        self.assert_fires("function_size", "base/word.h", "A has",
                          self.word("A::A(int x) : x_(x), y_{3} {\n" + lines(80) + "}\n"))

    def test_a_header_says_what_it_is_for(self):
        self.assert_fires("head", "base/word.h", "comment", {"base/word.h": "#pragma once\n"})
        self.assert_fires("head", "base/word.h", "pragma", {"base/word.h": "// Words.\n"})

    def test_each_source_has_a_test(self):
        self.assert_fires("missing_test", "base/word.cc", "tests/base/word_test.cc",
                          {"tests/base/word_test.cc": None})
        self.assert_clean({"tests/base/word_test.cc": None,
                           "tests/base/word_order_test.cc": "TEST(WordOrderTest, A) { F(); }\n"})

    def test_atomics_and_mutexes_have_a_concurrent_test(self):
        atomic = self.word("std::atomic<int> count;\n")
        self.assert_fires("missing_concurrent_test", "base/word.h", "std::atomic", atomic)
        self.assert_fires("missing_concurrent_test", "base/word.h", "Mutex",
                          self.word("Mutex mutex;\n"))
        named = '// concurrent: base/word.h\n#include "base/word.h"\n'
        self.assert_clean({**atomic, "tests/base/word_test.cc":
                           named + "TEST(WordConcurrentTest, A) { F(); }\n"})
        self.assert_fires("concurrent", "tests/base/word_test.cc", "no *ConcurrentTest", {
            **atomic, "tests/base/word_test.cc": named + "TEST(WordTest, A) { F(); }\n"})
        self.assert_fires("concurrent", "tests/base/word_test.cc", "does not exist", {
            "tests/base/word_test.cc":
                "// concurrent: base/gone.h\nTEST(WordConcurrentTest, A) { F(); }\n"})

    def test_threads_have_a_concurrent_test_too(self):
        for code in ("std::thread thread_;", "std::jthread thread_;", "auto x = std::async(F);",
                     "std::vector<std::thread> threads;", "pthread_create(&t, a, f, x);"):
            with self.subTest(code=code):
                self.assert_fires("missing_concurrent_test", "base/word.h", "uses",
                                  self.word(code + "\n"))
        self.assert_clean(self.word("int n = std::thread::hardware_concurrency();\n"
                                    "void F() { std::this_thread::yield(); }\n"))

    def test_atomics_of_tools_have_a_concurrent_test_too(self):
        for code in ("std::atomic<int> count;", "std::mutex mutex;", "Mutex mutex;"):
            with self.subTest(code=code):
                self.assert_fires("missing_concurrent_test", "tools/geardb/word.h", "uses",
                                  self.word(code + "\n", "tools/geardb/word.h"))
        self.assert_clean({
            **self.word("std::atomic<int> count;\n", "tools/geardb/word.h"),
            "tests/tools/geardb/word_test.cc":
                '// concurrent: tools/geardb/word.h\n#include "tools/geardb/word.h"\n'
                "TEST(WordConcurrentTest, A) { F(); }\n"})

    def test_a_concurrent_test_sees_what_it_names(self):
        test = "tests/base/word_test.cc"

        def files(name, include, **more):
            return {**self.word("std::atomic<int> count;\n", name), **more,
                    test: f"// concurrent: {name}\n#include {include}\n"
                          "TEST(WordConcurrentTest, A) { F(); }\n"}

        for name, include in (("base/count.h", '"base/word.h"'), ("base/count.h", "<base/count.h>"),
                              ("wal/core.h", '"wal/log.h"'), ("index/tree.h", '"base/word.h"'),
                              ("engine/internal/core.h", '"base/word.h"')):
            with self.subTest(name=name, include=include):
                self.assert_fires("concurrent", test, f"names {name}, but includes no header",
                                  files(name, include))
        for name, include in (("base/count.h", '"base/count.h"'),
                              ("engine/internal/core.h", '"engine/database.h"'),
                              ("engine/internal/core.h", '"engine/internal/plan.h"')):
            with self.subTest(name=name, include=include):
                self.assert_clean(files(name, include))
        fixture = {"tests/base/fixture.h": '// It.\n#pragma once\n#include "base/count.h"\n'}
        self.assert_clean(files("base/count.h", '"tests/base/fixture.h"', **fixture))

    def test_a_source_is_seen_through_a_header_of_its_folder(self):
        for include, seen in (("base/word.h", True), ("base/other.h", True), ("wal/x.h", False)):
            files = {"base/word.cc": '#include "base/word.h"\nstd::atomic<int> count;\n',
                     "tests/base/word_test.cc": f'// concurrent: base/word.cc\n#include "{include}"'
                                                "\nTEST(WordConcurrentTest, A) { F(); }\n"}
            with self.subTest(include=include):
                if seen:
                    self.assert_clean(files)
                else:
                    self.assert_fires("concurrent", "tests/base/word_test.cc",
                                      "names base/word.cc, but", files)

    def test_test_files_have_tests_with_proper_names(self):
        for text, part in (("int x;\n", "has no test"), ("TEST(Word, A) {}\n", "not called *Test"),
                           ("TEST(ConcurrentWordTest, A) {}\n", "label"),
                           ("TEST(WordTest, DISABLED_A) {}\n", "switched off"),
                           ("TEST(WordTest, A) {}\n", "WordTest.A tests nothing"),
                           ("TEST_F(WordTest, A) {\n  // EXPECT_EQ(1, 1);\n}\n", "tests nothing"),
                           ("TEST(WordTest, A) {\n  GTEST_SKIP() << why;\n}\n", "always skips"),
                           ("TEST(WordTest, A) { if (!gpu()) GTEST_SKIP(); }\n", "says why")):
            with self.subTest(text=text):
                self.assert_fires("test_files", "tests/base/word_test.cc", part,
                                  {"tests/base/word_test.cc": text})

    def test_a_skip_that_says_why_is_good(self):
        self.assert_clean({"tests/base/word_test.cc":
                           'TEST(WordTest, A) { if (!gpu()) GTEST_SKIP() << "no GPU"; F(); }\n'})

    def test_fuzzer_and_corpus_belong_together(self):
        fuzzer = {"tests/fuzz/record_fuzz.cc": "// Records.\n"}
        corpus = {"tests/fuzz/corpus/record/seed": "x"}
        self.assert_fires("fuzzers", "tests/fuzz/record_fuzz.cc", "has no corpus", fuzzer)
        self.assert_fires("fuzzers", "tests/fuzz/corpus/record", "has no", corpus)
        self.assert_clean({**fuzzer, **corpus})

    def test_named_bug_is_in_some_code(self):
        row = {"base/break.h": '// Bugs.\n#pragma once\n#define T(X) \\\n  X(skip, "A", "b")\n'}
        self.assert_fires("named_bugs", "base/break.h", "kBreak.skip", row)
        self.assert_clean({**row, "base/word.cc": '#include "base/word.h"\nint x = kBreak.skip;\n'})

    def test_build_files_agree(self):
        self.assert_fires("build_files", "CMakeLists.txt", "wal is not declared",
                          {"CMakeLists.txt": CLEAN["CMakeLists.txt"].replace("(wal ", "(wall ")})
        self.assert_fires("build_files", "CMakeLists.txt", "depends on", {
            "CMakeLists.txt": CLEAN["CMakeLists.txt"].replace("(index DEPENDS base",
                                                              "(index DEPENDS base wal")})
        self.assert_fires("build_files", "README.md", "tools/dev test",
                          {"README.md": "tools/dev quickstart\n## Later\ntools/dev test\n"})
        self.assert_fires("build_files", ".ci/run", "does not run", {".ci/run": "ctest\n"})
        self.assert_fires("build_files", "CMakePresets.json", "'tsan'",
                          {"CMakePresets.json": PRESETS.replace("tsan", "gone")})
        self.assert_fires("build_files", "stuff", "not a folder", {"stuff/x.txt": "x"})

    def test_texts_name_no_machine_and_no_leftovers(self):
        for rule, text in (("machine_path", "see /" + "work/x\n"),
                           ("machine_path", '"/' + 'tmp/x"\n'), ("note_to_self", "TO" + "DO: x\n"),
                           ("merge", "<" * 7 + " HEAD\n")):
            with self.subTest(text=text):
                self.assert_fires(rule, "base/NOTES.md", "", {"base/NOTES.md": text})
        self.assert_clean({"base/NOTES.md": "a/work/x and ${HOME}/tmp/x and XXXXXX\n"})

    def test_exception_must_name_a_file(self):
        path = next(path for path in self.exceptions() if not path.startswith("tests/"))
        self.assert_fires("allow_list", "tools/lint/config.py", path, {path: None})


if __name__ == "__main__":
    unittest.main()
