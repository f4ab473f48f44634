"""C++ text for the rules: comments and strings blanked out, includes, function bodies."""

import functools
import posixpath
import re
from typing import NamedTuple

_SPACE = r"(?:[ \t]|\\\n)*"
_INCLUDE = re.compile(rf"^{_SPACE}(?:#|%:){_SPACE}(include_next|include|import)\b{_SPACE}"
                      r'(?:"([^"\n]*)"|<([^>\n]*)>|([^\n]*))', re.MULTILINE)
# Names and numbers are tokens, too: in 1'000 and u8'"' it is they that say what the first quote is.
_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|\b(?:u8|[uUL])?R"(?P<tag>[^(\s"]*)\(.*?\)(?P=tag)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)*'|(?P<word>[A-Za-z_]\w*|\.?\d(?:'?[\w.])*)", re.DOTALL)
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")


@functools.cache
def blank(text, keep_strings=False):
    """`text` with comments (and strings) as spaces; lines and columns stay where they are."""
    def spaces(match):
        token = match.group(0)
        if match.group("word"):
            return token
        if keep_strings and not token.startswith(("//", "/*")):
            return token
        return re.sub(r"[^\n]", " ", token)
    return _TOKEN.sub(spaces, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Include(NamedTuple):
    """One line that includes a file."""
    line: int
    word: str     # include, include_next or import.
    written: str  # As it stands there, without quotes; "" when a macro names the file.
    header: str   # The same without "." and "..".
    system: bool  # In angle brackets.


def includes(text):
    """The Include of each line that includes a file, other than by a macro that hides it."""
    without_comments = blank(text, keep_strings=True)
    found = []
    for match in _INCLUDE.finditer(without_comments):
        word, quoted, angled, other = match.groups()
        written = quoted or angled or ""
        header = posixpath.normpath(written) if written else other.strip()
        line = line_of(text, match.end(1))
        found.append(Include(line, word, written, header, angled is not None))
    return found


def functions(code):
    """[(first line, last line, name)] of the functions defined in blanked `code`: blocks after a
    parameter list whose surroundings are namespaces and classes only. Approximate."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  code, flags=re.MULTILINE)
    found, stack, head_start = [], [], 0
    for match in re.finditer(r"[{};]", code):
        offset, token = match.start(), match.group(0)
        if token == ";":
            if not _inside_parentheses(code[head_start:offset]):
                head_start = offset + 1
            continue
        if token == "{" and re.match(r"[\w>]", code[offset - 1:offset]):
            stack.append(("initialiser", head_start, ""))  # `member_{3}`: the head goes on.
            continue
        if token == "{":
            head = code[head_start:offset]
            scopes_only = all(kind == "scope" for kind, _, _ in stack)
            if _SCOPE.search(re.sub(r"\([^()]*\)|<[^<>]*>", "", head)) and ")" not in head[-20:]:
                kind = "scope"
            elif scopes_only and re.search(r"\)[^()=]*$", head) and "=" not in head.split("(")[0]:
                kind = "function"
            else:
                kind = "block"
            stack.append((kind, head_start, head))
            head_start = offset + 1
            continue
        if stack:
            kind, start, head = stack.pop()
            if kind == "initialiser":
                head_start = start
                continue
            if kind == "function":
                first = start + len(head) - len(head.lstrip())
                name = re.search(r"([~\w:]+(?:\s*operator[^(\s]*)?)\s*\(", head)
                found.append((line_of(code, first), line_of(code, offset),
                              name.group(1) if name else "?"))
        head_start = offset + 1
    return found


def tests(code):
    """[(first line, last line, "Suite.Name", body)] of the tests in blanked `code`."""
    found = []
    for match in re.finditer(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)\s*\{", code,
                             re.MULTILINE):
        depth, at = 1, match.end()
        while depth > 0 and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        found.append((line_of(code, match.start()), line_of(code, at),
                      f"{match.group(1)}.{match.group(2)}", code[match.end():at - 1]))
    return found


def _inside_parentheses(text):
    return text.count("(") > text.count(")")
