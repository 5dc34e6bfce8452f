"""The files of a source tree, and C++ text with comments and strings blanked out.

Blanking keeps every character's place, so a line number found in it is right in the file.
"""

import os
import re
from functools import cache

SKIPPED_DIRS = {".git", ".cache", "build", "var", "node_modules", "__pycache__"}
TEXT_SUFFIXES = {
    ".h", ".cc", ".sql", ".md", ".txt", ".cmake", ".json", ".py", ".sh", ".bats", ".yaml", ".yml",
}
TEXT_NAMES = {"dev", "run", "LICENSE", ".clang-format", ".clang-tidy", ".gitignore"}


class Tree:
    """Paths are relative to the root, with slashes, sorted."""

    def __init__(self, root, programs=()):
        self.root = root
        self.programs = list(programs)  # whose --help the documents must agree with
        self.files = sorted(self._walk())

    def _walk(self):
        for folder, dirs, names in os.walk(self.root):
            dirs[:] = [d for d in dirs if d not in SKIPPED_DIRS]
            for name in names:
                if name in TEXT_NAMES or os.path.splitext(name)[1] in TEXT_SUFFIXES:
                    yield os.path.relpath(os.path.join(folder, name), self.root)

    @cache
    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    @cache
    def code(self, path):
        return blank(self.text(path))

    def lines(self, path):
        return enumerate(self.text(path).split("\n"), start=1)

    def code_lines(self, path):
        return enumerate(self.code(path).split("\n"), start=1)

    def cpp(self, *folders):
        """The C++ files under the given top folders."""
        return [
            f for f in self.files if f.endswith((".h", ".cc")) and f.split("/")[0] in folders
        ]

    def exists(self, path):
        return os.path.exists(os.path.join(self.root, path))


_TOKEN = re.compile(
    r"""
      //[^\n]*                                  # a comment to the end of the line
    | /\*.*?\*/                                 # a comment
    | R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"   # a raw string
    | "(?:\\.|[^"\\\n])*"                       # a string
    | (?<![0-9A-Za-z_])(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'  # a character; not the ' in 1'000
    """,
    re.DOTALL | re.VERBOSE,
)


def blank(text):
    """C++ without comments and the insides of strings; `#include` lines keep theirs."""

    def spaces(match):
        token = match.group()
        line_start = text.rfind("\n", 0, match.start()) + 1
        if token[0] == '"' and text[line_start : match.start()].strip() == "#include":
            return token
        inner = re.sub(r"[^\n]", " ", token)
        return '"' + inner[2:] + '"' if token[0] in "\"'" else inner

    return _TOKEN.sub(spaces, text)


_LABEL = re.compile(r"\A\s*(?:(?:public|private|protected)\s*:\s*)?")


def functions(code):
    """(line, length, head) of each outermost function body of blanked C++."""
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: re.sub(r"[^\n]", " ", m.group()), code,
                  flags=re.MULTILINE)
    head_start, line, open_blocks, inside = 0, 1, [], 0
    for i, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            head = _LABEL.sub("", code[head_start:i])
            head_line = line - head.count("\n")
            is_function = _is_function(head)
            open_blocks.append((is_function, head_line, head))
            inside += is_function
            head_start = i + 1
        elif char == "}" and open_blocks:
            is_function, head_line, head = open_blocks.pop()
            inside -= is_function
            if is_function and not inside:
                yield head_line, line - head_line + 1, head
            head_start = i + 1
        elif char == ";":
            head_start = i + 1


def _is_function(head):
    while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
        head = shorter
    if re.match(r"(?:template\s*)?(?:requires\b.*?\)\s*)?"
                r"(?:namespace|class|struct|union|enum|extern)\b", head, flags=re.DOTALL):
        return False
    before, parenthesis, _ = head.partition("(")
    return bool(parenthesis) and not ("=" in before and "operator" not in before)
