"""Rules about the tree: tests that must exist, texts that must agree, what must not be in it."""

import json
import os
import re

import config
import source

LIBRARY = tuple(config.LAYERS)


def check_missing_tests(tree):
    """x.cc of a layer has tests/<same path>/x_test.cc, or x_<behaviour>_test.cc."""
    for path in tree.cpp(*LIBRARY):
        if not path.endswith(".cc"):
            continue
        stem = path[:-len(".cc")]
        wanted = re.compile(rf"tests/{re.escape(stem)}_(?:\w+_)?test\.cc")
        if not any(wanted.fullmatch(other) for other in tree.paths):
            tree.report("missing_test", path, 1, f"tests/{stem}_test.cc is missing")


def _included(tree, path):
    """The headers that a test includes, by itself or through headers below tests/."""
    found, waiting = set(), [path]
    while waiting:
        for include in source.includes(tree.text(waiting.pop())):
            header = include.header
            if not include.system and header not in found:
                found.add(header)
                waiting += [header] if header.startswith("tests/") else []
    return found


def _sees(headers, name):
    """x.h is seen by whoever includes it, x.cc also through a header of its folder; what is in
    engine/internal also through any of its headers and the public ones, the only way to most."""
    stem, folder = name.rsplit(".", 1)[0], os.path.dirname(name)
    folders = {folder} if name.endswith(".cc") else set()
    folders |= {"engine", folder} if folder == "engine/internal" else set()
    return f"{stem}.h" in headers or any(os.path.dirname(header) in folders for header in headers)


def check_concurrent_tests(tree):
    """What uses threads, atomics or locks is named ("// concurrent: x") by a *ConcurrentTest."""
    covered = set()
    for path in tree.cpp("tests"):
        text = tree.text(path)
        for match in re.finditer(r"^// concurrent: (.*)$", text, re.MULTILINE):
            line = source.line_of(text, match.start())
            if not re.search(r"^TEST\w*\(\w*ConcurrentTest,", text, re.MULTILINE):
                tree.report("concurrent", path, line, "names files, but has no *ConcurrentTest")
                continue
            for name in match.group(1).split():
                if name not in tree.paths:
                    tree.report("concurrent", path, line, f"names {name}, which does not exist")
                elif not _sees(_included(tree, path), name):
                    tree.report("concurrent", path, line,
                                f"names {name}, but includes no header that it could be seen by")
                covered.add(name.rsplit(".", 1)[0])
    uses = re.compile(r"\bstd::atomic(?:_\w+)?\b|\bMutex\b|\bCondVar\b|__atomic_|__sync_|"
                      r"\bstd::(?:jthread|thread)\b(?!\s*::)|\bstd::async\b|"
                      r"\b(?:pthread|thrd)_create\b|" + config.FOREIGN_LOCKS)
    for path in tree.cpp(*LIBRARY, "tools"):
        match = uses.search(source.blank(tree.text(path)))
        if match and path.rsplit(".", 1)[0] not in covered:
            tree.report("missing_concurrent_test", path, source.line_of(tree.text(path),
                        match.start()), f"uses {match.group(0)}, but no file with a "
                        f"*ConcurrentTest says '// concurrent: {path}'")


def check_test_files(tree):
    """A test file has tests; suites are called *Test; none is switched off; no fixed places."""
    for path in tree.cpp("tests"):
        text = tree.text(path)
        suites = re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)", text, re.MULTILINE)
        if path.endswith("_test.cc") and not suites:
            tree.report("test_files", path, 1, "has no test")
        for suite, name in suites:
            if not suite.endswith("Test"):
                tree.report("test_files", path, 1, f"the suite {suite} is not called *Test")
            if "Concurrent" in suite and not suite.endswith("ConcurrentTest"):
                tree.report("test_files", path, 1, f"{suite} will not get the label 'concurrent'")
            if suite.startswith("DISABLED_") or name.startswith("DISABLED_"):
                tree.report("test_files", path, 1, f"{suite}.{name} is switched off")
        code = source.blank(text)
        for first, _, name, body in source.tests(code):
            if "(" not in body:
                tree.report("test_files", path, first, f"{name} tests nothing")
            if re.match(r"\s*GTEST_SKIP\b", body):
                tree.report("test_files", path, first, f"{name} is switched off: it always skips")
        for match in re.finditer(r"\bGTEST_SKIP\s*\(\s*\)\s*(?!<<|\s)", code):
            tree.report("test_files", path, source.line_of(code, match.start()),
                        "a skip says why: GTEST_SKIP() << …")


def check_fuzzers(tree):
    """A fuzzer has a committed corpus, and a corpus a fuzzer."""
    fuzzers = {match.group(1) for path in tree.paths
               if (match := re.fullmatch(r"tests/fuzz/(\w+)_fuzz\.cc", path))}
    corpora = {path.split("/")[3] for path in tree.paths
               if path.startswith("tests/fuzz/corpus/") and path.count("/") > 3}
    for name in sorted(fuzzers - corpora):
        tree.report("fuzzers", f"tests/fuzz/{name}_fuzz.cc", 1,
                    f"has no corpus in tests/fuzz/corpus/{name}")
    for name in sorted(corpora - fuzzers):
        tree.report("fuzzers", f"tests/fuzz/corpus/{name}", 1, f"has no tests/fuzz/{name}_fuzz.cc")


def check_named_bugs(tree):
    """Each row of base/break.h is a bug that some code has."""
    path = "base/break.h"
    names = re.findall(r"^\s*X\((\w+),", tree.text(path), re.MULTILINE)
    used = set()
    for other in tree.cpp(*LIBRARY):
        if other != path:
            used.update(re.findall(r"\bkBreak\.(\w+)", source.blank(tree.text(other))))
    for name in names:
        if name not in used:
            tree.report("named_bugs", path, 1, f"no code asks for kBreak.{name}")


def check_schemas(tree):
    """A schema of a layer includes only those of layers below it."""
    for path in tree.paths:
        folder = path.split("/")[0]
        if folder not in LIBRARY or not path.endswith(".fbs"):
            continue
        text = source.blank(tree.text(path), keep_strings=True)
        for match in re.finditer(r'\binclude\s*"([^"\n]*)"', text):
            name = match.group(1)
            if name.split("/")[0] not in config.LAYERS[folder] or "." in name.split("/")[:-1] \
                    or ".." in name.split("/"):
                tree.report("schemas", path, source.line_of(text, match.start()),
                            f'{folder} must not include "{name}"')


def check_links(tree):
    """CMake links a layer with what the layer table allows, wherever it says so."""
    calls = re.compile(r"\b(target_link_libraries|link_libraries|set_target_properties|"
                       r"set_property)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.IGNORECASE)
    for path in tree.paths:
        if not path.endswith((".cmake", "CMakeLists.txt")) or path.startswith("tests/"):
            continue
        text = re.sub(r"#[^\n]*", lambda match: " " * len(match.group(0)), tree.text(path))
        for match in calls.finditer(text):
            call, line = match.group(1).lower(), source.line_of(text, match.start())
            if call == "link_libraries":
                tree.report("links", path, line, "link_libraries is for every target: name one")
                continue
            words = re.findall(r"\$\{[^}]*\}|[\w:.+/-]+", match.group(2))
            if call != "target_link_libraries":
                if set(words) & set(LIBRARY) and re.search("LINK_LIBRARIES", match.group(2)):
                    tree.report("links", path, line, "write target_link_libraries")
                continue
            _check_link(tree, path, line, words)


def _check_link(tree, path, line, words):
    """One target_link_libraries. Only the functions of cmake/ link targets by a variable."""
    target, links = words[0], set(words[1:]) - {"PUBLIC", "PRIVATE", "INTERFACE"}
    if target.startswith("${"):
        wrong = links & set(LIBRARY) if path.startswith("cmake/") else {"by a variable's name"}
    elif target in LIBRARY:
        wrong = links - config.LAYERS[target] - config.LAYER_LINKS
    else:
        return
    if wrong:
        tree.report("links", path, line, f"{target} must not link {' '.join(sorted(wrong))}")


def check_build_files(tree):
    """CMake, presets, README and CI say the same."""
    cmake = tree.text("CMakeLists.txt")
    declared = {name: set(depends.split()) for name, depends in
                re.findall(r"^geardb_layer\((\w+)(?: BATCHED)?(?: DEPENDS ([\w ]+))?\)", cmake,
                           re.MULTILINE)}
    for layer, allowed in config.LAYERS.items():
        if layer not in declared:
            tree.report("build_files", "CMakeLists.txt", 1, f"the layer {layer} is not declared")
        elif declared[layer] != allowed - {layer}:
            tree.report("build_files", "CMakeLists.txt", 1,
                        f"the layer {layer} depends on {sorted(declared[layer])}, "
                        f"the layer table says {sorted(allowed - {layer})}")
    folders = {path.split("/")[0] for path in tree.paths if "/" in path}
    for folder in sorted(folders - config.FOLDERS):
        tree.report("build_files", folder, 1, "is not a folder of the layer table")

    readme_head = tree.text("README.md").split("\n## ")[0]
    for command in ("tools/dev quickstart", "tools/dev test"):
        if command not in readme_head:
            tree.report("build_files", "README.md", 1, f"'{command}' is not at the top")
    if not re.search(r"^(?:exec )?tools/dev test$", tree.text(".ci/run"), re.MULTILINE):
        tree.report("build_files", ".ci/run", 1, "does not run the README's 'tools/dev test'")
    try:
        presets = {preset["name"] for preset in
                   json.loads(tree.text("CMakePresets.json"))["configurePresets"]}
    except (ValueError, KeyError):
        presets = set()
    for name in ("release", "debug", "asan", "tsan", "fuzz", "break"):
        if name not in presets:
            tree.report("build_files", "CMakePresets.json", 1, f"has no preset '{name}'")


def check_texts(tree):
    """No path of one machine, no note to oneself, no text of a merge gone wrong."""
    rules = [
        ("machine_path", re.compile(r"(?<![\w.{}$)-])/(?:work|home|root|tmp|Users)/[\w.]"),
         "is a path of one machine"),
        ("note_to_self", re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|HA" + r"CK)\b"),
         "belongs into an issue"),
        ("merge", re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE), "is left of a merge"),
    ]
    for path in tree.paths:
        if path.startswith("tests/fuzz/corpus/") or path == "LICENSE":
            continue
        text = tree.text(path)
        for rule, pattern, message in rules:
            for match in pattern.finditer(text):
                tree.report(rule, path, source.line_of(text, match.start()),
                            f"'{match.group(0).strip()}' {message}")


def check_allow_list(tree):
    """Each exception names a file that exists, and says why."""
    for rule, path, reason in config.ALLOWED:
        if not os.path.exists(os.path.join(tree.root, path)) or not reason:
            tree.report("allow_list", "tools/lint/config.py", 1,
                        f"the exception ({rule}, {path}) is for no file, or gives no reason")
    for place in config.SYSTEM_HEADERS:
        if not place.endswith("/") and place not in tree.paths:
            tree.report("allow_list", "tools/lint/config.py", 1,
                        f"SYSTEM_HEADERS names {place}, which does not exist")
