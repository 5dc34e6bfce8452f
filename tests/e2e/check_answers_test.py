"""Shows that each check of check_answers.py and openapi_check.py can fail."""

import copy
import json
import unittest

import check_answers
import openapi_check

ERROR = {"error": "not_found", "message": "There is none."}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "paths": {
        "/openapi.json": {"get": {"operationId": "o", "summary": "s", "responses": {
            "200": {"description": "d", "content": {"application/json": {"schema": {}}}}}}},
        "/api/things/{id}": {
            "get": {
                "operationId": "get_thing", "summary": "s", "security": [{}, {"key": []}],
                "parameters": [{"name": "id", "in": "path", "required": True,
                                "x-takes-slashes": True, "schema": {"type": "string"}}],
                "responses": {
                    "200": {"description": "d", "content": {"application/json": {"schema": {
                        "type": "object", "required": ["id", "at"], "properties": {
                            "id": {"type": "string"},
                            "at": {"type": "string", "format": "date-time"},
                            "inner": {"type": "object", "properties": {"n": {
                                "type": "integer"}}}}}}}},
                    "404": {"$ref": "#/components/responses/NotFound"}}},
            "delete": {
                "operationId": "delete_thing", "summary": "s",
                "parameters": [{"name": "id", "in": "path", "required": True,
                                "x-takes-slashes": True, "schema": {"type": "string"}}],
                "responses": {"204": {"description": "d"}}}},
    },
    "components": {
        "schemas": {"Error": {"type": "object"}},
        "responses": {"NotFound": {"description": "d", "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"}}}}},
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    },
}


def exchange(method, target, status, body="", **more):
    if not isinstance(body, str):
        body = json.dumps(body) + "\n"
    return {"method": method, "target": target, "status": status, "body": body, "allow": "",
            "location": "", "content_type": "application/json" if body else ""} | more


THING = {"id": "a/b", "at": "2026-01-02T03:04:05.6Z"}
GOOD = [
    exchange("GET", "/openapi.json", 200, DOCUMENT),
    exchange("GET", "/api/things/a%2Fb?x=1", 200, THING),
    exchange("GET", "/api/things/a/b", 404, ERROR),
    exchange("DELETE", "/api/things/a", 204),
    exchange("GET", "/nowhere", 404, ERROR),
    exchange("GET", "/%zz", 400, ERROR),
    exchange("GET", "//openapi.json", 301, location="/openapi.json"),
    exchange("POST", "/api/things/a", 405, ERROR, allow="GET, HEAD, DELETE"),
    exchange("HEAD", "/api/things/a", 200, content_type="application/json"),
    exchange("", "", 400, ERROR),
    exchange("", "", 200, "anything"),
]


def faults_of(*more):
    return check_answers.check([*GOOD, *more])[1]


class CheckAnswersTest(unittest.TestCase):
    def test_what_is_described_has_no_fault(self):
        self.assertEqual(faults_of(), [])

    def test_each_fault_of_an_answer_is_found(self):
        cases = [
            (exchange("GET", "/api/things/a", 200, {"id": 1, "at": THING["at"]}), "id: 1 is not"),
            (exchange("GET", "/api/things/a", 200, {"id": "a"}), "'at' is a required"),
            (exchange("GET", "/api/things/a", 200, THING | {"more": 1}), "'more' was unexpected"),
            (exchange("GET", "/api/things/a", 200, THING | {"inner": {"m": 1}}), "'m' was unexp"),
            (exchange("GET", "/api/things/a", 200, THING | {"at": "yesterday"}), "'date-time'"),
            (exchange("GET", "/api/things/a", 200, THING | {"at": "2026-01-02T03:04:05+01:00"}),
             "'date-time'"),
            (exchange("GET", "/api/things/a", 200, "{"), "no JSON"),
            (exchange("GET", "/api/things/a", 200), "its type is ''"),
            (exchange("GET", "/api/things/a", 200, content_type="application/json"), "no body"),
            (exchange("GET", "/api/things/a", 200, THING, content_type="text/html"), "text/html"),
            (exchange("GET", "/api/things/a", 201, THING), "201 is not described"),
            (exchange("DELETE", "/api/things/a", 204, THING), "none is described"),
            (exchange("GET", "/nowhere", 200, THING), "200 of what is not described"),
            (exchange("GET", "/nowhere", 404), "its type is ''"),
            (exchange("GET", "/nowhere", 404, {"error": "x"}), "'message' is a required"),
            (exchange("POST", "/api/things/a", 200, THING), "200 of what is not described"),
            (exchange("POST", "/api/things/a", 405, ERROR, allow="GET"), "Allow is 'GET'"),
            (exchange("HEAD", "/api/things/a", 200, THING), "a HEAD has a body"),
            (exchange("HEAD", "/api/things/a", 202), "not described for GET"),
            (exchange("get", "/api/things/a", 200, THING), "200 of what is not described"),
            (exchange("GET", "/x/../y", 301), "needs a Location"),
            (exchange("", "", 500, "oops"), "no JSON"),
            (check_answers.Fault("x.jsonl:1: no UTF-8"), "no UTF-8"),
        ]
        for case, message in cases:
            with self.subTest(case=case):
                faults = faults_of(case)
                self.assertEqual(len(faults), 1, faults)
                self.assertIn(message, faults[0])

    def test_an_operation_that_never_succeeded_is_a_fault(self):
        faults = check_answers.check([e for e in GOOD if e["method"] != "DELETE"])[1]
        self.assertEqual(len(faults), 1, faults)
        self.assertIn("DELETE /api/things/{id}: never succeeded", faults[0])

    def test_without_a_description_nothing_is_right(self):
        with self.assertRaises(check_answers.Fault):
            check_answers.check(GOOD[1:])
        with self.assertRaises(check_answers.Fault):
            check_answers.check([*GOOD, exchange("GET", "/openapi.json", 200, {})])

    def test_the_most_literal_path_counts(self):
        document = copy.deepcopy(DOCUMENT)
        item = copy.deepcopy(document["paths"]["/api/things/{id}"])
        document["paths"]["/api/things/{id}/parts"] = item
        found = check_answers.Description(document).find("/api/things/a/b/parts")
        self.assertEqual(found[0], "/api/things/{id}/parts")


class OpenApiCheckTest(unittest.TestCase):
    def fault(self, path, value):
        """What is said of the document with `value` at `path`."""
        document = copy.deepcopy(DOCUMENT)
        node = document
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value
        return " ".join(openapi_check.faults(document))

    def test_a_good_document_has_no_fault(self):
        self.assertEqual(openapi_check.faults(DOCUMENT), [])

    def test_each_fault_of_a_document_is_found(self):
        get = ["paths", "/api/things/{id}", "get"]
        self.assertIn("openapi", self.fault(["openapi"], "3.0.0"))
        self.assertIn("'version' is a required", self.fault(["info"], {"title": "t"}))
        self.assertIn("sumary", self.fault([*get, "sumary"], "misspelt"))
        self.assertIn("responses", self.fault([*get, "responses"], {"2000": {}}))
        self.assertIn("not valid under any", self.fault([*get, "parameters", 0, "required"], False))
        self.assertIn("leads nowhere", self.fault(
            [*get, "responses", "404"], {"$ref": "#/components/responses/Gone"}))
        self.assertIn("no JSON Schema", self.fault(
            ["components", "schemas", "Error"], {"type": "strnig"}))
        self.assertIn("has the operationId", self.fault([*get, "operationId"], "o"))
        self.assertIn("not those it declares", self.fault([*get, "parameters"], []))
        self.assertIn("no security scheme", self.fault([*get, "security"], [{"lock": []}]))
        self.assertIn("cannot be told", self.fault(["paths", "/api/things/{name}"], {}))


if __name__ == "__main__":
    unittest.main()
