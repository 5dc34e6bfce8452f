"""check_answers.py DIRECTORY: holds every answer that the e2e suite heard against /openapi.json.

The directory has what testing/http_record.h wrote: *.jsonl, an exchange per line. The description
is among them, as the server served it. An answer is at fault when its route, its method or its
status is not described, when its body is not what the schema of that status says (of a success to
the letter: a member that is not described is a fault), when it has a body where none is described
or the other way round, or when its type is another. And every operation must have succeeded at
least once, or nothing is known about it.

Requests that are no HTTP, or ask for what is not there, have no operation; their answers must be
errors in the one shape, with a status that says so.
"""

import collections
import functools
import json
import pathlib
import re
import sys
import urllib.parse

import jsonschema

import openapi_check

JSON = "application/json"
FAULTS_SHOWN = 40

# Refused before anybody looks at where the request goes.
BEFORE_DISPATCH = {400, 401, 403, 408, 413, 431, 503}

ERROR = {"type": "object", "required": ["error", "message"], "properties": {
    "error": {"type": "string", "minLength": 1},
    "message": {"type": "string", "minLength": 1}}}

FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("date-time")
def is_time(value):
    """Always UTC."""
    return not isinstance(value, str) or bool(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", value))


def validator(schema):
    return jsonschema.Draft202012Validator(schema, format_checker=FORMATS)


def to_the_letter(schema):
    """The same schema for objects that have no members besides those it names."""
    if isinstance(schema, list):
        return [to_the_letter(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: to_the_letter(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        strict["properties"] = {k: to_the_letter(v) for k, v in schema["properties"].items()}
        strict.setdefault("additionalProperties", False)
    return strict


class Fault(Exception):
    """Why an answer is not as described."""


class Description:
    """An OpenAPI document, ready to judge answers."""

    def __init__(self, document):
        self.document = document
        self.templates = sorted(((self.segments(path, item), path, item)
                                 for path, item in document["paths"].items()),
                                key=lambda entry: [*(kind for kind, _ in entry[0]), 3])
        self.successes = collections.Counter()
        self.checked = collections.Counter()
        self.elsewhere = collections.Counter()

    def segments(self, path, item):
        """0 literal, 1 one segment, 2 one or more (3 the end): what sorts first counts first."""
        rest = {p["name"] for operation in item.values()
                for p in openapi_check.parameters_of(self.document, operation, "path")
                if p.get("x-takes-slashes")}
        return [(0, part) if not part.startswith("{") else (2 if part[1:-1] in rest else 1, part)
                for part in path.split("/")[1:]]

    def find(self, target):
        """(path, its methods), or None."""
        split = urllib.parse.urlsplit(target) if target.startswith("http://") else None
        raw = split.path if split else target.partition("?")[0]
        try:
            path = urllib.parse.unquote(raw.encode("latin-1").decode(), errors="strict")
        except UnicodeError:
            return None
        parts = path.split("/")[1:]
        for template, name, item in self.templates:
            pattern = "/".join(re.escape(text) if kind == 0 else "[^/]+" if kind == 1 else ".+"
                               for kind, text in template)
            if re.fullmatch(pattern, "/".join(parts), re.DOTALL):
                return name, item
        return None

    @functools.cache
    def body_validator(self, path, method, status):
        """(media type, validator of the body or None), or None where no body is described."""
        responses = self.document["paths"][path][method]["responses"]
        response = openapi_check.resolve(self.document, responses[str(status)])
        if "content" not in response:
            return None
        (media, content), = response["content"].items()
        schema = openapi_check.resolve(self.document, content["schema"])
        if media != JSON:
            return media, None
        return media, validator(schema if status >= 400 else to_the_letter(schema))

    def judge(self, exchange):
        """Counts the exchange; Fault when it is not as described."""
        method, status = exchange["method"].lower(), exchange["status"]
        if not method:
            self.elsewhere["no question known"] += 1
            return check_error(exchange) if status >= 400 else None
        if status == 301:
            self.elsewhere["moved"] += 1
            return check_moved(exchange)
        found = self.find(exchange["target"])
        if found is None:
            self.elsewhere["no such path"] += 1
            return check_refusal(exchange, BEFORE_DISPATCH | {404})
        path, item = found
        if exchange["method"] == "HEAD" and takes_head(item):
            self.elsewhere["HEAD for GET"] += 1
            return check_head(exchange, item["get"])
        if exchange["method"] != method.upper() or method not in item:
            self.elsewhere["no such method"] += 1
            return self.check_wrong_method(exchange, item)
        responses = item[method]["responses"]
        if str(status) not in responses:
            raise Fault(f"the status {status} is not described")
        self.checked[f"{method.upper()} {path}", status] += 1
        if status < 400:
            self.successes[f"{method.upper()} {path}"] += 1
        return check_body(exchange, self.body_validator(path, method, status))

    def check_wrong_method(self, exchange, item):
        check_refusal(exchange, BEFORE_DISPATCH | {405})
        allowed = {name.upper() for name in item} | ({"HEAD"} if takes_head(item) else set())
        if exchange["status"] == 405 and set(exchange["allow"].split(", ")) != allowed:
            raise Fault(f"Allow is {exchange['allow']!r}, but the path takes {sorted(allowed)}")

    def never_succeeded(self):
        for path, method, operation in openapi_check.operations(self.document):
            if operation.get("summary", "").startswith("Always 400"):
                continue  # it is there for its message
            if self.successes[f"{method.upper()} {path}"] == 0:
                yield f"{method.upper()} {path}"


def takes_head(item):
    """Wherever GET works, but for WebSockets."""
    return "get" in item and "101" not in item["get"]["responses"]


def check_head(exchange, get):
    if str(exchange["status"]) not in get["responses"]:
        raise Fault(f"the status {exchange['status']} is not described for GET")
    if exchange["body"]:
        raise Fault("the answer to a HEAD has a body")


def check_moved(exchange):
    if not exchange["location"] or exchange["body"]:
        raise Fault("a 301 needs a Location and no body")


def check_refusal(exchange, statuses):
    if exchange["status"] not in statuses:
        raise Fault(f"the status {exchange['status']} of what is not described")
    if exchange["method"] != "HEAD":
        check_error(exchange)


def check_error(exchange):
    check_body(exchange, (JSON, validator(ERROR)))


def check_body(exchange, described):
    body = exchange["body"]
    if described is None:
        if body:
            raise Fault("it has a body, but none is described")
        return
    media, schema = described
    if exchange["content_type"].partition(";")[0].strip() != media.partition(";")[0].strip():
        raise Fault(f"its type is {exchange['content_type']!r}, not {media!r}")
    if not body:
        raise Fault("it has no body")
    if schema is None:
        return
    try:
        value = json.loads(body)
    except ValueError as error:
        raise Fault(f"its body is no JSON: {error}") from error
    for error in schema.iter_errors(value):
        where = "/".join(map(str, error.absolute_path)) or "the body"
        raise Fault(f"{where}: {error.message[:300]}")


def read_exchanges(directory):
    """Each exchange, or the Fault of a line that is none."""
    for file in sorted(pathlib.Path(directory).glob("*.jsonl")):
        for number, line in enumerate(file.read_bytes().splitlines(), 1):
            try:
                yield json.loads(line.decode())
            except ValueError as error:
                yield Fault(f"{file.name}:{number}: {error}")


def served_document(exchanges):
    """/openapi.json as it was served. Fault when it never was, or not always the same."""
    bodies = {e["body"] for e in exchanges if isinstance(e, dict) and e["status"] == 200
              and e["method"] == "GET" and e["target"] == "/openapi.json"}
    if len(bodies) != 1:
        raise Fault(f"/openapi.json was served in {len(bodies)} forms")
    return json.loads(bodies.pop())


def check(exchanges):
    """(description, faults): every exchange judged."""
    document = served_document(exchanges)
    faults = ["/openapi.json: " + fault for fault in openapi_check.faults(document)]
    if faults:
        return None, faults
    description = Description(document)
    for exchange in exchanges:
        try:
            if isinstance(exchange, Fault):
                raise exchange
            description.judge(exchange)
        except Fault as fault:
            what = "a record" if isinstance(exchange, Fault) else "{} {} → {}".format(
                exchange["method"] or "(raw)", exchange["target"][:120], exchange["status"])
            shown = ""
            if not isinstance(exchange, Fault):
                shown = "\n    " + exchange["body"][:300].rstrip()
            faults.append(f"{what}: {fault}{shown}")
    faults += [f"{name}: never succeeded, so its answer is not checked"
               for name in description.never_succeeded()]
    return description, faults


def main():
    exchanges = list(read_exchanges(sys.argv[1]))
    if not exchanges:
        print(f"no exchange was recorded in {sys.argv[1]}")
        return 1
    try:
        description, faults = check(exchanges)
    except Fault as fault:
        print(fault)
        return 1
    if description:
        for (name, status), count in sorted(description.checked.items()):
            print(f"{count:6} {status} {name}")
        for what, count in sorted(description.elsewhere.items()):
            print(f"{count:6}     {what}")
    print(f"{len(exchanges)} exchanges checked, {len(faults)} faults")
    print("\n".join(faults[:FAULTS_SHOWN]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
