"""Shows that each rule of rules.py can fail: a small clean tree, then one breach each."""

import os
import tempfile
import unittest

import rules
from tree import Tree, blank, functions

CLEAN = {
    "ARCHITECTURE.md": (
        "# Map\n\n## Direction of dependencies\n\n```\n"
        "api  http, service, auth, domain, json\napps  everything\n```\n"
    ),
    "README.md": "# Fixture\n\nSee [the guide](docs/guide.md#first-steps).\n",
    "docs/guide.md": (
        "# Guide\n\n## First steps\n\n`--port` of `intermute serve --port 1`, then `GET /health`:\n"
        "\n```\ncurl --silent http://127.0.0.1:1/health\ncurl $URL/api/items/$ID\n```\n"
    ),
    "src/base/README.md": "Tools.\n",
    "src/base/clock.h": "#pragma once\n",
    "src/base/clock.cc": (
        '#include "base/clock.h"\n\nlong Now() { return std::chrono::system_clock::now(); }\n'
    ),
    "src/base/clock_test.cc": '#include "base/clock.h"\n#include "testing/fake_clock.h"\n',
    "src/base/CMakeLists.txt": "il_library(il_base SOURCES clock.cc clock_test.cc)\n",
    "src/api/README.md": "HTTP.\n",
    "src/api/routes.h": (
        '#pragma once\n#include <boost/asio/awaitable.hpp>\n\n#include "service/use.h"\n'
        'inline constexpr auto kHealth = "/health";\nconstexpr auto kItem = "/api/items/{id}";\n'
    ),
}

# Rule → breaches: (files that differ from CLEAN, where it must be reported, part of the message).
BREACHES = {
    rules.include_direction: [
        ({"src/base/clock.h": '#pragma once\n#include "api/routes.h"\n'}, "src/base/clock.h:2",
         "base may not use api"),
        ({"src/db/a.h": '#pragma once\n\n#include "db/sqlite/b.h"\n'}, "src/db/a.h:3",
         "db may not use db/sqlite"),
        ({"src/kernel/a.h": '#include "service/b.h"\n'}, "src/kernel/a.h:1", "may not use service"),
        ({"src/base/clock.cc": '#include "testing/fake_clock.h"\n'}, "src/base/clock.cc:1",
         "may not use testing"),
        ({"src/novel/a.h": "#pragma once\n"}, "src/novel/a.h:1", "novel is not in MAY_USE"),
    ],
    rules.dependency_list: [
        ({"ARCHITECTURE.md": "## Direction of dependencies\n\napi  service, auth\n"},
         "ARCHITECTURE.md:3", "api may use auth, domain, http, json, service"),
        ({"ARCHITECTURE.md": "## Direction of dependencies\n\napps  everything\n"},
         "ARCHITECTURE.md:1", "the dependencies of api are not listed"),
        ({"ARCHITECTURE.md": "## Direction of dependencies\n\nnovel, api  nothing\n"},
         "ARCHITECTURE.md:3", "src/novel does not exist"),
        ({"src/json/README.md": "JSON.\n", "src/json/a.h": "#pragma once\n",
          "src/api/a_test.cc": '#include "json/a.h"\n'},
         "tests/tidy/rules.py:1", "api may use json, and does not"),
    ],
    rules.foreign_doors: [
        ({"src/db/a.cc": "#include <sqlite3.h>\n"}, "src/db/a.cc:1", "db/sqlite only"),
        ({"apps/a.cc": "\n#include <boost/json.hpp>\n"}, "apps/a.cc:2", "json only"),
        ({"src/api/a.h": "#include <boost/describe/class.hpp>\n"}, "src/api/a.h:1", "json only"),
        ({"src/service/a.h": "#include <boost/beast/core.hpp>\n"}, "src/service/a.h:1",
         "http only"),
        ({"src/db/a.cc": "#include <boost/asio.hpp>\n"}, "src/db/a.cc:1",
         "api, http, service only"),
        ({"src/base/clock.h": "#include <boost/config.hpp>\n"}, "src/base/clock.h:1", "no Boost"),
    ],
    rules.line_length: [
        ({"src/base/clock.h": "#pragma once\n//" + "x" * 99 + "\n"}, "src/base/clock.h:2", "101"),
        ({"dev": "#" * 101 + "\n"}, "dev:1", "101 columns"),
    ],
    rules.function_length: [
        ({"src/base/clock.cc": "int a;\nvoid F() {\n" + "  G();\n" * 69 + "}\n"},
         "src/base/clock.cc:2", "71 lines"),
        ({"src/base/clock_test.cc": "TEST(A, B) {\n" + "  if (a) { b(); }\n" * 69 + "}\n"},
         "src/base/clock_test.cc:1", "71 lines"),
        ({"src/base/clock.cc": "template <class T>\nint C<T>::F(int a = 1) const {\n"
          + "  char c = '{'; // }\n" * 70 + "}\n"}, "src/base/clock.cc:1", "73 lines"),
        ({"src/base/clock.cc": "void F() {\n" + "  char32_t c = U'{';\n" * 69 + "}\n"},
         "src/base/clock.cc:1", "71 lines"),
    ],
    rules.sources_are_built: [
        ({"src/base/CMakeLists.txt": "il_library(il_base SOURCES clock.cc)\n# clock_test.cc\n"},
         "src/base/clock_test.cc:1", "nobody builds it"),
        ({"apps/ic.cc": "\n"}, "apps/ic.cc:1", "nobody builds it"),
    ],
    rules.labels_are_sanitized: [
        ({"src/base/CMakeLists.txt": "il_test(a SOURCES clock.cc clock_test.cc\n  LABEL base)\n"},
         "src/base/CMakeLists.txt:2", "base is not among ASAN_LABELS"),
        ({"src/base/CMakeLists.txt": "il_test(a LABEL base SOURCES clock.cc clock_test.cc)\n",
          ".ci/run": "ASAN_LABELS=(database\n  json)\n"},
         "src/base/CMakeLists.txt:1", "base is not among ASAN_LABELS"),
    ],
    rules.tests_have_a_subject: [
        ({"src/base/clocks_test.cc": "\n"}, "src/base/clocks_test.cc:1", "tests nothing"),
    ],
    rules.folder_readmes: [
        ({"src/api/README.md": None}, "src/api/README.md:1", "is missing"),
        ({"src/api/README.md": "line\n" * 16}, "src/api/README.md:16", "at most 15"),
        ({"src/stray.h": "#pragma once\n"}, "src/stray.h:1", "put it in a folder"),
    ],
    rules.banned_calls: [
        ({"src/api/a.cc": "auto t = std::chrono::system_clock::now();\n"}, "src/api/a.cc:1",
         "take a Clock&"),
        ({"src/api/a.cc": "auto t = steady_clock::now();\n"}, "src/api/a.cc:1", "a Clock&"),
        ({"src/api/a.cc": "\nlong t = time(nullptr);\n"}, "src/api/a.cc:2", "a Clock&"),
        ({"src/api/a.cc": "int n = rand();\n"}, "src/api/a.cc:1", "rand is banned"),
        ({"src/api/a.cc": "std::random_device d;\n"}, "src/api/a.cc:1", "random_device"),
        ({"src/api/a.cc": 'auto* e = getenv("A");\n'}, "src/api/a.cc:1", "as an argument"),
        ({"src/api/a.cc": "std::cout << 1;\n"}, "src/api/a.cc:1", "std::cout is banned"),
        ({"src/base/clock_test.cc": "std::this_thread::sleep_for(1s);\n"},
         "src/base/clock_test.cc:1", "FakeClock"),
        ({"src/api/a.cc": "a = b ? co_await F() : co_await G();\n"}, "src/api/a.cc:1",
         "both sides"),
        ({"src/api/a.cc": "a = b ? c\n  : co_await G();\n"}, "src/api/a.cc:2", "both sides"),
        ({"src/api/a.cc": "auto* t = gmtime(&s);\n"}, "src/api/a.cc:1", "time_text"),
        ({"src/api/a.cc": "sprintf(b, f);\n"}, "src/api/a.cc:1", "sprintf"),
        ({"src/api/a.cc": "assert(a);\n"}, "src/api/a.cc:1", "IL_CHECK"),
        ({"src/api/a.cc": "std::abort();\n"}, "src/api/a.cc:1", "IL_CHECK or Error"),
    ],
    rules.project_is_read_once: [
        ({"src/api/a.cc": 'auto p = request.Query("project");\n'}, "src/api/a.cc:1",
         "Request::project"),
        ({"src/api/a.cc": '\nreturn request.Param("project");\n'}, "src/api/a.cc:2",
         "Request::project"),
    ],
    rules.slugs_are_fixed: [
        ({"src/api/a.cc": 'return Error(c, m)\n    .WithSlug(fmt::format("no {}", x));\n'},
         "src/api/a.cc:2", "takes a literal"),
        ({"src/api/a.cc": "return Error(c, m).WithSlug(slug);\n"}, "src/api/a.cc:1",
         "takes a literal"),
        ({"src/api/a.cc": 'return Error(c, m).WithSlug(b ? "x" : slug);\n'}, "src/api/a.cc:1",
         "takes a literal"),
        ({"src/api/a.cc": 'return Error(c, m).WithSlug("x" + slug);\n'}, "src/api/a.cc:1",
         "takes a literal"),
    ],
    rules.leftovers: [
        ({"src/base/clock.h": "#pragma once\n// TO" "DO: later\n"}, "src/base/clock.h:2", "issue"),
        ({"docs/guide.md": "FIX" "ME\n"}, "docs/guide.md:1", "issue"),
    ],
    rules.white_space: [
        ({"README.md": "# A \n"}, "README.md:1", "at the end of the line"),
        ({"README.md": "# A"}, "README.md:1", "no newline"),
        ({"dev": "\n\tx\n"}, "dev:2", "a tab"),
    ],
    rules.pragma_once: [
        ({"src/base/clock.h": "#ifndef A\n"}, "src/base/clock.h:1", "#pragma once"),
    ],
    rules.documented_flags: [
        ({"README.md": "Use `--prot`.\n"}, "README.md:1", "the flag --prot"),
        ({"docs/guide.md": "```\nbuild/release/bin/intermute serve --bind 1\n```\n"},
         "docs/guide.md:2", "the flag --bind"),
    ],
    rules.documented_routes: [
        ({"README.md": "`GET /api/item/{id}`, then curl http://localhost:1/health\n"},
         "README.md:1", "no route /api/item/{id}"),
        ({"README.md": "curl http://localhost:1/api/item/7\n"}, "README.md:1",
         "no route takes /api/item/7"),
        ({"README.md": "\ncurl $URL/api/items/$ID/more\n"}, "README.md:2",
         "no route takes /api/items/$ID/more"),
        ({"docs/guide.md": "\n/api/items\n"}, "docs/guide.md:2", "no route /api/items"),
    ],
    rules.links_resolve: [
        ({"README.md": "[a](docs/gone.md)\n"}, "README.md:1", "leads nowhere"),
        ({"docs/guide.md": "[a](../README.md#gone)\n"}, "docs/guide.md:1", "no heading #gone"),
    ],
}

PROGRAM = "#!/bin/sh\necho '  --port N   the port'\n"


def make_tree(folder, changes):
    for path, text in (CLEAN | changes).items():
        if text is None:
            continue
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
    program = os.path.join(folder, "program")
    with open(program, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    os.chmod(program, 0o700)
    return Tree(folder, [program])


class RulesTest(unittest.TestCase):
    def test_a_clean_tree_breaks_no_rule(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = make_tree(folder, {})
            for rule in rules.RULES:
                with self.subTest(rule.__name__):
                    self.assertEqual(list(rule(tree)), [])

    def test_each_breach_is_reported_where_it_is(self):
        for rule, breaches in BREACHES.items():
            for changes, where, message in breaches:
                with self.subTest(rule.__name__, where=where), \
                        tempfile.TemporaryDirectory() as folder:
                    found = [(f"{path}:{line}", text)
                             for path, line, text in rule(make_tree(folder, changes))]
                    self.assertTrue(any(w == where and message in t for w, t in found), found)

    def test_every_rule_has_a_breach(self):
        self.assertEqual(set(BREACHES), set(rules.RULES))

    def test_every_banned_call_has_a_breach(self):
        texts = [text for changes, _, _ in BREACHES[rules.banned_calls]
                 for text in changes.values()]
        for pattern, _, _ in rules.BANNED:
            with self.subTest(pattern):
                self.assertTrue(any(rules.re.search(pattern, blank(t)) for t in texts))


class TreeTest(unittest.TestCase):
    def test_blanking_keeps_places_and_include_targets(self):
        text = '#include "a/b.h"\nint n = 1\'000; // "x"\nauto s = R"(a"{)" "\\"{";\n'
        code = blank(text)
        self.assertEqual(len(code), len(text))
        self.assertIn('#include "a/b.h"', code)
        self.assertIn("1'000", code)
        self.assertNotIn("{", code)
        self.assertNotIn("x", code)

    def test_classes_tables_and_namespaces_are_not_functions(self):
        code = ("namespace a {\nclass IL_X(1) B {\n public:\n  int F() {\n    return 1;\n  }\n};\n"
                "constexpr C kTable[] = {{F(1)},\n{2}};\n"
                "template <typename T>\n  requires(x<T>)\nclass D {\n};\n}\n")
        self.assertEqual([(line, length) for line, length, _ in functions(code)], [(4, 3)])


if __name__ == "__main__":
    unittest.main()
