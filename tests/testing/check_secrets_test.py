"""Shows that check_secrets.py finds what is planted, wherever that is, and nothing else."""

import json
import os
import pathlib
import tempfile
import unittest
import unittest.mock

import check_secrets

TOKEN = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE"
KEY = "open-sesame"
GIVEN = json.dumps({"agent_id": "a", "token": TOKEN}, separators=(",", ":"))


class SecretsTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        self.files = self.root / "written" / "7-1"
        self.files.mkdir(parents=True)
        (self.root / "7.secrets").write_text(f"{KEY}\n{TOKEN}\n")
        self.answer(GIVEN, method="POST", target="/api/agents?x=y")
        (self.files / "stderr-1.txt").write_text("INFO starting\n")

    def answer(self, body, method="GET", target="/api/agents", location=""):
        line = {"method": method, "target": target, "location": location, "body": body}
        with (self.root / "7.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def faults(self):
        return check_secrets.check(self.root)[0]

    def test_a_clean_suite_has_none(self):
        self.assertEqual(self.faults(), [])

    def test_a_secret_in_a_log_is_found(self):
        for secret in (KEY, TOKEN, "x" + TOKEN + "y", f'"{KEY}"'):
            with self.subTest(secret=secret):
                (self.files / "stderr-1.txt").write_text(f"INFO let in key={secret}\n")
                fault, = self.faults()
                self.assertIn("written/7-1/stderr-1.txt", fault)
                self.assertNotIn(KEY, fault)
                self.assertNotIn(TOKEN, fault)

    def test_a_secret_in_a_database_is_found(self):
        (self.files / "test.db").write_bytes(b"\0\xff\x01" + TOKEN.encode() + b"\0")
        self.assertEqual(len(self.faults()), 1)

    def test_a_secret_in_a_file_below_is_found(self):
        (self.files / "deep").mkdir()
        (self.files / "deep" / "s.lock").write_text(KEY)
        self.assertEqual(len(self.faults()), 1)

    def test_a_secret_in_an_answer_is_found(self):
        self.answer(json.dumps({"error": "unauthorized", "message": f"no key {KEY}"}))
        self.assertEqual(len(self.faults()), 1)

    def test_only_registration_hands_a_token_out(self):
        self.answer(GIVEN)
        self.answer(GIVEN, method="POST", target="/api/agents/a/heartbeat")
        self.assertEqual(len(self.faults()), 2)

    def test_a_secret_in_a_location_is_found(self):
        self.answer("", location=f"/api/agents/{TOKEN}")
        self.assertEqual(len(self.faults()), 1)

    def test_a_secret_in_a_text_of_a_websocket_is_found(self):
        (self.root / "7.texts").write_text(f'{{"type":"t"}}\n{{"a":"{TOKEN}"}}\n')
        fault, = self.faults()
        self.assertIn("7.texts", fault)

    def test_a_secret_is_found_in_whichever_of_many_files(self):
        (self.root / "7.secrets").write_text("".join(f"{KEY}-{n}-\n" for n in range(3000)))
        for number in range(20):
            (self.files / f"stderr-{number}.txt").write_bytes(
                b"\xff\n" * 1000 + f"{KEY}-{number * 100}-".encode())
        self.assertEqual(len(self.faults()), 20)

    def test_a_secret_in_a_file_with_an_odd_name_is_found(self):
        (self.files / "-e new\nline \udcff").write_text(KEY)
        self.assertEqual(len(self.faults()), 1)

    def test_what_cannot_be_searched_is_a_fault(self):
        grep = self.root / "grep"
        grep.write_text("#!/bin/sh\nexit 2\n")
        grep.chmod(0o755)
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.root}:/bin"):
            self.assertEqual(self.faults(), ["grep could not read everything"])

    def test_keys_of_keys_files_are_secrets_and_may_stand_there(self):
        for text in (f"projects: {{a: {{keys: [{KEY}-2, 'x{KEY}']}}}}\n",
                     f"projects:\n  a:\n    keys:\n      - {KEY}-2\n      - x{KEY}\n"):
            with self.subTest(text=text):
                (self.root / "7.secrets").write_text("")
                (self.files / "keys.yaml").write_text(text)
                (self.files / "stderr-1.txt").write_text("")
                self.assertEqual(self.faults(), [])
                (self.files / "stderr-1.txt").write_text(f"{KEY}-2 x{KEY}")
                self.assertEqual(len(self.faults()), 2)

    def test_what_a_kill_left_of_a_keys_file_may_hold_keys_if_nobody_else_can_read_it(self):
        left = self.files / "intermute.keys.yaml.new-Ab12cd"
        left.write_text(f"projects: {{a: {{keys: [{KEY}]}}}}\n")
        left.chmod(0o600)
        self.assertEqual(self.faults(), [])
        left.chmod(0o644)
        self.assertEqual(len(self.faults()), 1)

    def test_only_init_may_print_a_key(self):
        (self.files / "stdout-2.txt").write_text(f"project: web\nkey: {KEY}\n")
        self.assertEqual(self.faults(), [])
        (self.files / "stdout-2.txt").write_text(f"listening\nkey: {KEY}\n")
        self.assertEqual(len(self.faults()), 1)

    def test_another_test_may_use_the_word(self):
        other = self.root / "written" / "8-1"
        other.mkdir()
        (other / "stderr-1.txt").write_text(KEY)
        self.assertEqual(self.faults(), [])

    def test_a_short_secret_is_a_fault_of_the_test(self):
        (self.root / "7.secrets").write_text("alpha\n")
        fault, = self.faults()
        self.assertIn("too short", fault)

    def test_nothing_recorded_is_a_fault(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(len(check_secrets.check(empty)[0]), 1)


if __name__ == "__main__":
    unittest.main()
