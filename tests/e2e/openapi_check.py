"""Is a document OpenAPI 3.1? Checked against the parts of the standard that we use: a word
that stands in none of them is a fault, so a misspelt one cannot pass as an extension.
"""

import re

import jsonschema

TEXT = {"type": "string", "minLength": 1}
METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]


def closed(required, optional=None, **more):
    """An object of these members and no other, apart from extensions."""
    return {"type": "object", "properties": required | (optional or {}),
            "required": sorted(required), "patternProperties": {"^x-": {}},
            "additionalProperties": False, **more}


REFERENCE = closed({"$ref": {"type": "string", "pattern": "^#/components/"}})
SCHEMA = {"type": ["object", "boolean"]}
CONTENT = {"type": "object", "minProperties": 1, "additionalProperties": closed({"schema": SCHEMA}),
           "propertyNames": {"pattern": r"^[\w.+-]+/[\w.+-]+"}}
PARAMETER = closed(
    {"name": TEXT, "in": {"enum": ["query", "header", "path", "cookie"]}, "schema": SCHEMA},
    {"description": TEXT, "required": {"type": "boolean"}},
    allOf=[{"if": {"properties": {"in": {"const": "path"}}},
            "then": {"required": ["required"], "properties": {"required": {"const": True}}}}])
RESPONSE = closed({"description": TEXT}, {"content": CONTENT})
SECURITY = {"type": "array", "items": {"type": "object", "additionalProperties": {
    "type": "array", "items": TEXT}}}
OPERATION = closed(
    {"operationId": TEXT, "summary": TEXT,
     "responses": {"type": "object", "minProperties": 1, "additionalProperties": False,
                   "patternProperties": {r"^[1-5]\d\d$": {"anyOf": [REFERENCE, RESPONSE]}}}},
    {"tags": {"type": "array", "items": TEXT}, "security": SECURITY,
     "parameters": {"type": "array", "uniqueItems": True,
                    "items": {"anyOf": [REFERENCE, PARAMETER]}},
     "requestBody": closed({"content": CONTENT}, {"required": {"type": "boolean"}})})
SCHEME = {"anyOf": [
    closed({"type": {"const": "http"}, "scheme": TEXT}, {"description": TEXT}),
    closed({"type": {"const": "apiKey"}, "in": {"enum": ["header", "query", "cookie"]},
            "name": TEXT}, {"description": TEXT})]}
DOCUMENT = closed(
    {"openapi": {"type": "string", "pattern": r"^3\.1\.\d+$"},
     "info": closed({"title": TEXT, "version": TEXT}, {"description": TEXT}),
     "paths": {"type": "object", "propertyNames": {"pattern": "^/"},
               "additionalProperties": {"type": "object", "additionalProperties": False,
                                        "properties": {m: OPERATION for m in METHODS}}}},
    {"jsonSchemaDialect": {"const": "https://json-schema.org/draft/2020-12/schema"},
     "components": closed({}, {
         "schemas": {"type": "object", "additionalProperties": SCHEMA},
         "responses": {"type": "object", "additionalProperties": RESPONSE},
         "parameters": {"type": "object", "additionalProperties": PARAMETER},
         "securitySchemes": {"type": "object", "additionalProperties": SCHEME}})})


def resolve(document, node):
    """What a reference stands for, KeyError when it leads nowhere; anything else is itself."""
    while isinstance(node, dict) and "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def walk(node, path=""):
    """(where, object) of every object inside."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from walk(value, f"{path}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from walk(value, f"{path}/{index}")


def operations(document):
    """(path, method, operation) of every operation."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def parameters_of(document, operation, where):
    resolved = [resolve(document, p) for p in operation.get("parameters", [])]
    return [p for p in resolved if p["in"] == where]


def faults(document):
    """What is wrong with the document, a line each; nothing when it is in order."""
    shape = jsonschema.Draft202012Validator(DOCUMENT)
    found = ["/".join(map(str, e.absolute_path)) + ": " + e.message[:200]
             for e in shape.iter_errors(document)]
    if found:
        return found  # what follows relies on the shape
    for where, node in walk(document):
        try:
            resolve(document, node)
        except KeyError:
            found.append(f"{where}: {node['$ref']} leads nowhere")
        if where.endswith("/schema") or re.fullmatch("/components/schemas/[^/]+", where):
            try:
                jsonschema.Draft202012Validator.check_schema(node)
            except jsonschema.SchemaError as error:
                found.append(f"{where}: no JSON Schema: {error.message[:200]}")
    if found:
        return found
    seen = {}
    schemes = document.get("components", {}).get("securitySchemes", {})
    for path, method, operation in operations(document):
        name = f"{method.upper()} {path}"
        other = seen.setdefault(operation["operationId"], name)
        if other != name:
            found.append(f"{name}: has the operationId of {other}")
        declared = [p["name"] for p in parameters_of(document, operation, "path")]
        if sorted(declared) != sorted(re.findall(r"{([^}]*)}", path)):
            found.append(f"{name}: the parameters of its path are not those it declares")
        for way in operation.get("security", []):
            found += [f"{name}: there is no security scheme {s}" for s in way if s not in schemes]
    templates = {}
    for path in document["paths"]:
        other = templates.setdefault(re.sub(r"{[^}]*}", "{}", path), path)
        if other != path:
            found.append(f"{path}: cannot be told from {other}")
    return found
