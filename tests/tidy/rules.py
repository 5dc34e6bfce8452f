"""What must hold for the tree as a whole. One function per rule; each yields (path, line, message).

A rule is added here together with a tree that breaks it in rules_test.py, which fails otherwise.
"""

import os
import re
import subprocess

from tree import functions

LINE_MAX = 100
FUNCTION_LINES_MAX = 70
README_LINES_MAX = 15

# What each folder of src/ may include besides itself and base. This is ARCHITECTURE.md's "direction
# of dependencies"; a folder that is not here may use nothing, so a new folder must be added.
MAY_USE = {
    "base": set(),
    "json": set(),
    "glob": set(),
    "resilience": set(),
    "db": set(),
    "db/sqlite": {"db"},
    "domain": set(),
    "store": {"db", "domain", "glob", "json"},
    "events": {"store", "domain", "json"},
    "intercore": {"db", "domain", "glob"},
    "auth": {"domain"},
    # db: await.h is the one adapter between its callbacks and coroutines.
    "service": {"store", "events", "intercore", "resilience", "auth", "glob", "domain", "db"},
    "http": {"json"},
    "api": {"http", "service", "auth", "json", "domain"},
    "mcp": {"http", "service", "auth", "json", "domain"},
    "kernel": {"db", "db/sqlite", "json"},
    "cli": {"kernel", "json"},
}

# One door per foreign library: who includes it, the others go through. Benchmarks and tests are
# free, as they stand outside and compare.
DOORS = [
    (r"sqlite3\.h", {"db/sqlite"}),
    (r"boost/(json|describe)\b", {"json"}),
    (r"boost/beast\b", {"http"}),
    (r"boost/asio\b", {"service", "http", "api"}),
    (r"openssl/", {"auth"}),
    (r"nettle/", {"kernel"}),
    (r"yaml-cpp/", {"auth"}),
]

# (what, where it may stand, what to use instead); "test" stands for what only tests build.
BANNED = [
    (r"\b(system|steady|high_resolution)_clock::now\b", {"src/base/clock.cc", "test"},
     "take a Clock&"),
    (r"\b(time\((nullptr|NULL|0)\)|gettimeofday\(|clock_gettime\()", {"src/base/clock.cc"},
     "take a Clock&"),
    (r"\bs?rand\(", set(), "base/id.h, or a seeded engine in tests"),
    (r"\brandom_device\b", {"src/base/id.cc", "src/resilience/retry.cc"},
     "take a Random, or a seeded engine in tests"),
    (r"\bgetenv\(", {"apps/", "src/cli/", "test"}, "take the value as an argument"),
    (r"\bstd::(cout|cerr|clog)\b|\b(printf|puts)\(", {"apps/", "src/cli/", "test"},
     "base/log.h, or return the text"),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|\bsleep\(", set(),
     "a timer of Clock, or wait for a signal; in tests FakeClock"),
    (r"\?[^;]*\bco_await\b|^\s*:\s*co_await\b", set(),
     "use if and else: g++ 12 destroys both sides"),
    (r"\b(strtok|gmtime|localtime|asctime|ctime)\(", set(), "base/time_text.h"),
    (r"\b(sprintf|strcpy|strcat)\(", {"test"}, "{fmt} or std::string"),
    (r"(?<![_\w])assert\(", set(), "IL_CHECK"),
    (r"\b(abort|_exit|quick_exit)\(", {"src/base/check.cc", "apps/", "test"}, "IL_CHECK or Error"),
]

LEFTOVERS = re.compile(r"\b(" + "|".join(["FIX" + "ME", "X" + "XX", "HA" + "CK", "TO" + "DO"])
                       + r")\b")


def is_test(path):
    """A test, what several tests share, or a program that a test starts."""
    return path.endswith(("_test.cc", "_fixture.h", "_fixture.cc", "_process.cc"))


def folder_of(path):
    """The folder of src/ a file or an include belongs to: db/sqlite is one of its own."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[:2] == ["db", "sqlite"] else parts[0]


def includes(tree, path):
    for number, line in tree.code_lines(path):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match.group(1), match.group(2)


def include_direction(tree):
    for path in tree.cpp("src"):
        folder = folder_of(path[len("src/"):])
        allowed = MAY_USE.get(folder, set()) | {folder, "base"}
        if is_test(path):  # they run on a real file, and on the real routes, wherever they stand
            allowed = allowed | {"testing", "db", "db/sqlite", "store", "service"}
            allowed |= {"api"} if folder == "http" else set()
        if folder not in MAY_USE:
            yield path, 1, f"folder {folder} is not in MAY_USE of tests/tidy/rules.py"
        for number, quote, target in includes(tree, path):
            if quote == '"' and folder_of(target) not in allowed:
                yield path, number, f"{folder} may not use {folder_of(target)} ({target})"


def used_folders(tree, folder):
    """The folders that the production code of `folder` includes, besides itself and base."""
    return {folder_of(target)
            for path in tree.cpp("src")
            if folder_of(path[len("src/"):]) == folder and not is_test(path)
            for _, quote, target in includes(tree, path) if quote == '"'} - {folder, "base"}


def documented_dependencies(tree):
    """(line, folder, what it uses) of the list in ARCHITECTURE.md."""
    listed = False
    for number, line in tree.lines("ARCHITECTURE.md"):
        if line.startswith("#"):
            listed = line == "## Direction of dependencies"
        match = listed and re.match(r"([a-z/]+(?:, [a-z/]+)*) {2,}([a-z/]+(?:, [a-z/]+)*)$", line)
        for folder in match.group(1).split(", ") if match else ():
            yield number, folder, set(match.group(2).split(", ")) - {"nothing"}


def dependency_list(tree):
    """ARCHITECTURE.md, MAY_USE and the includes agree; an edge that nobody uses is a breach."""
    folders = {folder_of(path[len("src/"):]) for path in tree.cpp("src")} & set(MAY_USE)
    listed = set()
    for number, folder, uses in documented_dependencies(tree):
        listed.add(folder)
        if folder == "apps":
            continue
        if folder not in folders:
            yield "ARCHITECTURE.md", number, f"src/{folder} does not exist"
        elif uses != MAY_USE[folder]:
            allowed = ", ".join(sorted(MAY_USE[folder])) or "nothing"
            yield "ARCHITECTURE.md", number, f"{folder} may use {allowed} (MAY_USE)"
    for folder in sorted(folders - listed - {"base"}):
        yield "ARCHITECTURE.md", 1, f"the dependencies of {folder} are not listed"
    for folder in sorted(folders):
        for unused in sorted((MAY_USE[folder] & folders) - used_folders(tree, folder)):
            yield "tests/tidy/rules.py", 1, f"{folder} may use {unused}, and does not"


def foreign_doors(tree):
    for path in tree.cpp("src", "apps"):
        folder = folder_of(path[len("src/"):]) if path.startswith("src/") else "apps"
        for number, _, target in includes(tree, path):
            for pattern, doors in DOORS:
                if re.match(pattern, target) and folder not in doors:
                    yield path, number, f"<{target}> belongs in {', '.join(sorted(doors))} only"
            if folder == "base" and target.startswith("boost/"):
                yield path, number, "base uses no Boost"


def line_length(tree):
    for path in tree.files:
        if path.endswith((".md", ".json")) or os.path.basename(path) in {".clang-tidy", "LICENSE"}:
            continue  # tables and long patterns cannot be wrapped
        for number, line in tree.lines(path):
            if len(line) > LINE_MAX:
                yield path, number, f"{len(line)} columns; at most {LINE_MAX}"


def function_length(tree):
    for path in tree.cpp("src", "apps", "tests", "bench", "fuzz"):
        for line, length, head in functions(tree.code(path)):
            if length > FUNCTION_LINES_MAX:
                name = " ".join(head.split())[:60]
                yield path, line, f"{length} lines; at most {FUNCTION_LINES_MAX}: {name}"


def sources_are_built(tree):
    """Every .cc is named in a CMakeLists.txt of its folder or above, outside comments."""
    listed = set()
    for path in tree.files:
        if os.path.basename(path) != "CMakeLists.txt":
            continue
        for line in tree.text(path).split("\n"):
            for word in re.findall(r"[\w./-]+\.cc\b", line.split("#")[0]):
                listed.add(os.path.normpath(os.path.join(os.path.dirname(path), word)))
    for path in tree.cpp("src", "apps", "tests", "bench", "fuzz"):
        if path.endswith(".cc") and path not in listed:
            yield path, 1, "is in no CMakeLists.txt, so nobody builds it"


def labels_are_sanitized(tree):
    """Every label of tests in src/ is among those that .ci/run tests for errors of memory."""
    ci = ".ci/run"
    found = re.search(r"ASAN_LABELS=\(([^)]*)\)", tree.text(ci)) if tree.exists(ci) else None
    sanitized = found.group(1).split() if found else []
    for path in tree.files:
        if not path.startswith("src/") or os.path.basename(path) != "CMakeLists.txt":
            continue
        for number, line in tree.lines(path):
            for label in re.findall(r"\bLABEL (\w+)", line.split("#")[0]):
                if label not in sanitized:
                    yield path, number, f"{label} is not among ASAN_LABELS of {ci}"


def tests_have_a_subject(tree):
    """x_test.cc or x_by_y_test.cc stands beside x.h or x.cc."""
    for path in tree.cpp("src", "apps"):
        if not path.endswith("_test.cc"):
            continue
        folder, name = os.path.split(path[: -len("_test.cc")])
        words = name.split("_")
        stems = ["/".join([folder, "_".join(words[:n])]) for n in range(1, len(words) + 1)]
        if not any(tree.exists(stem + suffix) for stem in stems for suffix in (".h", ".cc")):
            yield path, 1, f"tests nothing in this folder: there is no {name}.h"


def folder_readmes(tree):
    for folder in sorted({"/".join(f.split("/")[:2]) for f in tree.cpp("src")}):
        readme = folder + "/README.md"
        if folder.endswith((".h", ".cc")):
            yield folder, 1, "stands in src/ itself; put it in a folder"
        elif readme not in tree.files:
            yield readme, 1, "is missing: purpose, what does not belong, where to start"
    for path in tree.files:
        if path.startswith("src/") and path.endswith("/README.md"):
            count = len(tree.text(path).rstrip("\n").split("\n"))
            if count > README_LINES_MAX:
                yield path, count, f"{count} lines; at most {README_LINES_MAX}"


def banned_calls(tree):
    for path in tree.cpp("src", "apps"):
        for number, line in tree.code_lines(path):
            for pattern, doors, instead in BANNED:
                allowed = any(path.startswith(door) for door in doors) or (
                    "test" in doors and is_test(path))
                match = re.search(pattern, line)
                if match and not allowed:
                    yield path, number, f"{match.group().strip('(')} is banned here: {instead}"


def project_is_read_once(tree):
    """Which project a request works in is found, and held against its key, in one place."""
    for path in tree.cpp("src"):
        if not path.startswith("src/api/") or path == "src/api/prepare.cc" or is_test(path):
            continue
        for number, line in tree.lines(path):
            if re.search(r'\b(Query|Param)\("project"\)', line):
                yield path, number, "use Request::project, which was held against the key"


# Files that pass on a slug which is fixed elsewhere: the server's, and the route table's.
SLUG_FROM_ELSEWHERE = {"apps/client.cc", "src/api/prepare.cc"}


def slugs_are_fixed(tree):
    """The `error` of an answer is a literal or a constant: it holds nothing that a client sent."""
    for path in tree.cpp("src", "apps"):
        if path in SLUG_FROM_ELSEWHERE or is_test(path):
            continue
        code = tree.code(path)
        for match in re.finditer(r"[.>]WithSlug\(", code):
            argument = code[match.end():].split(";")[0]
            if not re.match(r'\s*(?:[\w.]+(?:\s*==\s*"[^"]*")?\s*\?\s*"[^"]*"\s*:\s*)?'
                            r'(?:"[^"]*"(?:\s*"[^"]*")*|k[A-Z]\w*)\s*\)', argument):
                line = code.count("\n", 0, match.start()) + 1
                yield path, line, "WithSlug() takes a literal; variable text belongs in the message"


def leftovers(tree):
    for path in tree.files:
        for number, line in tree.lines(path):
            match = LEFTOVERS.search(line)
            if match:
                yield path, number, f"{match.group()}: an open point is an issue, not a comment"


def white_space(tree):
    for path in tree.files:
        text = tree.text(path)
        if text and not text.endswith("\n"):
            yield path, text.count("\n") + 1, "no newline at the end"
        for number, line in tree.lines(path):
            if line != line.rstrip():
                yield path, number, "white space at the end of the line"
            elif "\t" in line:
                yield path, number, "a tab"


def pragma_once(tree):
    for path in tree.cpp("src", "apps", "tests", "bench", "fuzz"):
        if path.endswith(".h") and not tree.text(path).startswith("#pragma once\n"):
            yield path, 1, "a header begins with #pragma once"


# ---- Documents ----

OUR_COMMANDS = {"intermute", "ic", "dev"}


def documents(tree):
    return [f for f in tree.files
            if f.endswith(".md") and (f.startswith(("docs/", "tests/", "src/")) or "/" not in f)]


def code_spans(tree, path):
    """(line, text) of each fenced line and each `span` of a document."""
    fenced = False
    for number, line in tree.lines(path):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            yield number, line.strip()
        else:
            for span in re.findall(r"`([^`]+)`", line):
                yield number, span


def is_ours(command_line):
    """True for a call of our programs, and for flags that stand alone."""
    words = [w for w in command_line.lstrip("$ ").split() if not re.match(r"[A-Z_]+=", w)]
    return bool(words) and (words[0].startswith("--")
                            or os.path.basename(words[0]) in OUR_COMMANDS)


def known_flags(tree):
    texts = []
    for program in tree.programs:
        for arguments in (["--help"], ["serve", "--help"], ["init", "--help"], ["who", "--help"],
                          ["inbox", "--help"], ["help", "--markdown"]):
            ran = subprocess.run([program, *arguments], capture_output=True, text=True,
                                 stdin=subprocess.DEVNULL, timeout=30, check=False)
            texts.append(ran.stdout + ran.stderr)
    return set(re.findall(r"--[a-z][a-z-]*", " ".join(texts)))


def documented_flags(tree):
    known = known_flags(tree)
    for path in documents(tree):
        for number, span in code_spans(tree, path):
            if not is_ours(span):
                continue
            for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span):
                if flag not in known:
                    yield path, number, f"no program of ours has the flag {flag}"


OURS = r"/(?:api|health|metrics|ws|openapi\.json)\b"
ROUTE = re.compile(rf"(?<![\w./}}-]){OURS}[\w./{{}}-]*")
# What a reader can send as it stands: $URL/api/agents/$ID
REQUEST = re.compile(rf"(?:(?:http|ws)s?://[\w.:]+|\$URL)({OURS}[\w./${{}}-]*)")


def route_templates(tree):
    """The paths of the route table, as they stand in its sources."""
    return {route for path in tree.cpp("src")
            if path.startswith(("src/api/", "src/mcp/")) and not path.endswith("_test.cc")
            for route in re.findall(r'"(/[^"\s]*)"', tree.text(path))}


def template_pattern(template):
    parts = re.split(r"({[^}]*})", template)
    return re.compile("".join(
        re.escape(p) if not p.startswith("{") else ".+" if p.endswith("...}") else "[^/]+"
        for p in parts))


def documented_routes(tree):
    """A route by name is in the table; a path that can be sent fits one of it."""
    templates = route_templates(tree)
    known = {re.sub(r"{[^}]*}", "{}", template) for template in templates}
    patterns = [template_pattern(template) for template in templates]
    for path in documents(tree):
        for number, line in tree.lines(path):
            for request in REQUEST.findall(line):
                if not any(pattern.fullmatch(request.rstrip(".")) for pattern in patterns):
                    yield path, number, f"no route takes {request}"
            for route in ROUTE.findall(REQUEST.sub(" ", line)):
                route = route.rstrip(".")
                if re.sub(r"{[^}]*}", "{}", route) not in known:
                    yield path, number, f"there is no route {route}"


def anchors(text):
    """The #names that headings get."""
    heads = re.findall(r"^#+ +(.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def links_resolve(tree):
    for path in documents(tree):
        for number, line in tree.lines(path):
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                if not tree.exists(file):
                    yield path, number, f"the link {target} leads nowhere"
                elif anchor and file in tree.files and anchor not in anchors(tree.text(file)):
                    yield path, number, f"{file} has no heading #{anchor}"


RULES = [
    include_direction, dependency_list, foreign_doors, line_length, function_length,
    sources_are_built, labels_are_sanitized, tests_have_a_subject, folder_readmes, banned_calls,
    project_is_read_once, slugs_are_fixed, leftovers, white_space, pragma_once, documented_flags,
    documented_routes, links_resolve,
]
