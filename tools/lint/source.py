"""C++ text for the rules: comments and strings blanked out, includes, function bodies."""

import re

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s"]*)\(.*?\)(?P=tag)"|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*'", re.DOTALL)
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")


def blank(text, keep_strings=False):
    """`text` with comments (and strings) as spaces; lines and columns stay where they are."""
    def spaces(match):
        token = match.group(0)
        if keep_strings and not token.startswith(("//", "/*")):
            return token
        return re.sub(r"[^\n]", " ", token)
    return _TOKEN.sub(spaces, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def includes(text):
    """[(line, path, is_system)] of the #include lines."""
    without_comments = blank(text, keep_strings=True)
    return [(line_of(text, match.start()), match.group(1) or match.group(2), not match.group(1))
            for match in INCLUDE.finditer(without_comments)]


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


def _inside_parentheses(text):
    return text.count("(") > text.count(")")
