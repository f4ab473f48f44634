"""Rules about what a C++ file says: includes, calls, names, size."""

import re

import config
import source

LIBRARY = tuple(config.LAYERS)


def _of_the_tree(include):
    """Whether a header is one of ours; in angle brackets it is found all the same (-I<root>)."""
    if not include.system:
        return True
    top = include.header.split("/")[0]
    return top in (*LIBRARY, "tools", "tests", "..", "") or include.written != include.header


def check_includes(tree):
    """Headers are included in one way, which the other rules see: "folder/name.h"."""
    for path in tree.cpp(*LIBRARY, "tools", "tests", "python"):
        for include in source.includes(tree.text(path)):
            said = include.written or include.header
            if include.word != "include":
                tree.report("includes", path, include.line, f"#{include.word}: write #include")
            if not include.written:
                tree.report("includes", path, include.line,
                            f"'{said}' names no file: write its name here")
                continue
            if not _of_the_tree(include):
                continue
            if include.system:
                tree.report("includes", path, include.line,
                            f'<{said}> is a file of the tree: write "{include.header}"')
            if include.written != include.header or include.header.startswith(("/", "..")):
                tree.report("includes", path, include.line,
                            f"'{said}' must be named from the root, without '.' and '..'")
            if not include.header.endswith((".h", ".cuh")):
                tree.report("includes", path, include.line, f"'{said}' is no header")


def check_file_kinds(tree):
    """C++ files have the names by which the rules and the build find them."""
    others = re.compile(r"\.(?:hpp|hh|hxx|H|h\+\+|inc|inl|ipp|tcc|tpp|txx|impl|def|cpp|cxx|"
                        r"c|C|c\+\+|ixx|cppm|mm|m|S|s|asm)$")
    for path in tree.paths:
        if others.search(path) and not path.startswith("tests/fuzz/corpus/"):
            tree.report("file_kinds", path, 1, "C++ files are called .h, .cc, .cuh or .cu")


def _may_include(path, header):
    """What the layer table says of a file and a header of the tree."""
    folder, target = path.split("/")[0], header.split("/")[0]
    if folder == "tools":
        return ((target in config.TOOL_LAYERS and not header.startswith("engine/internal/"))
                or any(path.startswith(place) and header in headers
                       for place, headers in config.TOOL_FOLDER_HEADERS.items())
                or any(path.startswith(place) and target in layers
                       for place, layers in config.TOOL_FOLDER_LAYERS.items()))
    if _public(path):
        return (target in config.PUBLIC_HEADER_LAYERS and "_generated.h" not in header
                and not header.startswith("engine/internal/"))
    return target in config.LAYERS[folder]


def _public(path):
    return re.fullmatch(r"engine/[^/]+\.h", path)


def check_layers(tree):
    """Each folder includes only what the layer table allows."""
    for path in tree.cpp(*LIBRARY, "tools"):
        for include in source.includes(tree.text(path)):
            header, line = include.header, include.line
            if not include.written or not _of_the_tree(include):
                continue
            if "/" not in header:
                if header != "geardb_break_choice.h":
                    tree.report("layers", path, line, f'"{header}" must be named from the root')
                continue
            if not _may_include(path, header):
                what = "a public header" if _public(path) else path.split("/")[0]
                tree.report("layers", path, line, f'{what} must not include "{header}"')
            installed = _public(path) or re.fullmatch(r"base/.*\.h", path)
            if header == "base/break.h" and installed:
                tree.report("layers", path, line, "an installed header must not see base/break.h")


def check_namespaces(tree):
    """Nobody declares what belongs to a layer that it does not see."""
    opened = re.compile(r"\bnamespace\s+(?:\[\[.*?\]\]\s*)?(\w[\w:\s]*)\{")
    for path in tree.cpp(*LIBRARY, "tools"):
        folder = path.split("/")[0]
        seen = config.PUBLIC_HEADER_LAYERS if _public(path) else config.LAYERS.get(folder, set())
        code = source.blank(tree.text(path))
        for match in opened.finditer(code):
            for name in re.findall(r"\w+", match.group(1)):
                if name in LIBRARY and name not in seen:
                    tree.report("namespaces", path, source.line_of(code, match.start()),
                                f"declares what is in the namespace '{name}', which it must not "
                                "see")


def check_system_headers(tree):
    """Headers of the system and of other packages stay in the places that are on the list."""
    for path in tree.cpp(*LIBRARY, "tools", "tests", "python"):
        for include in source.includes(tree.text(path)):
            header = include.header
            ours = _of_the_tree(include) and (include.system or "/" not in header
                                              or header.split("/")[0] in config.FOLDERS)
            if not include.written or ours or header in config.STANDARD_HEADERS:
                continue
            places = [place for place, headers in config.SYSTEM_HEADERS.items()
                      if header in headers]
            if not any(path == place or place.endswith("/") and path.startswith(place)
                       for place in places):
                tree.report("system_headers", path, include.line,
                            f"<{header}> belongs to {' '.join(places) or 'nowhere'}")


def check_calls(tree):
    """Calls that the library, tests or tools must not make."""
    for path in tree.cpp(*LIBRARY, "tools", "tests"):
        folder = path.split("/")[0]
        code = source.blank(tree.text(path))
        for rule, pattern, instead in config.BANNED_CALLS:
            if folder == "tests" and rule not in config.BANNED_IN_TESTS:
                continue
            if folder == "tools" and rule not in config.BANNED_IN_TOOLS:
                continue
            for match in re.finditer(pattern, code):
                tree.report(rule, path, source.line_of(code, match.start()),
                            f"'{match.group(0).strip()}': {instead}")


def _words(name):
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def check_names(tree):
    """No file, type, namespace or variable has a name that says nothing."""
    types = re.compile(r"\b(?:class|struct|union|enum(?:\s+class)?|namespace|using)\s+"
                       r"(?:GEARDB_\w+\(.*?\)\s+)?([A-Za-z_]\w*)")
    banned = "|".join(sorted(config.BANNED_NAMES))
    variables = re.compile(rf"(?:[\w>&*])[ \t&*]+((?:{banned}))\s*(?:[=;,){{]|\[\d)")
    for path in tree.cpp(*LIBRARY, "tools", "tests", "python"):
        stem = path.rsplit("/", 1)[-1].split(".")[0]
        for part in [*path.split("/")[:-1], *stem.split("_")]:
            if part in config.BANNED_NAMES:
                tree.report("names", path, 1, f"'{part}' says nothing about the file")
        code = source.blank(tree.text(path))
        for match in types.finditer(code):
            words = _words(match.group(1))
            if words and words[-1] in config.BANNED_NAMES:
                tree.report("names", path, source.line_of(code, match.start()),
                            f"'{match.group(1)}' says nothing about the type")
        for match in variables.finditer(code):
            before = re.search(r"[A-Za-z_]+$", code[:match.start() + 1])
            if before and before.group(0) in ("return", "co_return", "case", "goto", "delete"):
                continue
            tree.report("names", path, source.line_of(code, match.start(1)),
                        f"'{match.group(1)}' says nothing about the thing")


def check_size(tree):
    """Files, functions and lines stay short."""
    for path in tree.paths:
        if not path.endswith((".h", ".cc", ".cu", ".cuh", ".py", ".sh", ".cmake")) and path not in (
                "tools/dev", "tools/break_check", "CMakeLists.txt"):
            continue
        lines = tree.text(path).splitlines()
        if len(lines) > config.LINES_MAX:
            tree.report("file_size", path, len(lines),
                        f"{len(lines)} lines, more than {config.LINES_MAX}: look for the second "
                        "thing it does")
        for number, line in enumerate(lines, 1):
            if len(line) > config.COLUMNS_MAX:
                tree.report("columns", path, number,
                            f"{len(line)} columns, more than {config.COLUMNS_MAX}")
    for path in tree.cpp(*LIBRARY, "tools", "tests"):
        for first, last, name in source.functions(source.blank(tree.text(path))):
            count = last - first + 1
            if count > config.FUNCTION_LINES_MAX:
                tree.report("function_size", path, first, f"{name} has {count} lines, more than "
                            f"{config.FUNCTION_LINES_MAX}")


def check_heads(tree):
    """A header says at its top what it is for; so does a source file without a header."""
    for path in tree.cpp(*LIBRARY, "tools", "tests"):
        text = tree.text(path)
        header = re.sub(r"\.cc$", ".h", path)
        has_header = header != path and header in tree.paths
        is_test = path.startswith("tests/") and path.endswith("_test.cc")
        if not text.startswith("//") and not has_header and not is_test:
            tree.report("head", path, 1, "begins without a comment that says what it is for")
        if path.endswith((".h", ".cuh")) and "#pragma once" not in text:
            tree.report("head", path, 1, "has no #pragma once")
