"""check_secrets.py DIRECTORY: searches what the programs of a suite wrote for secrets.

The directory has what the suite recorded (testing/http_record.h, testing/temp_db.h):

  PID.secrets       a key or token per line that a test sent or was given
  PID.jsonl         the answers that it heard
  PID.texts         what came over its WebSockets
  written/PID-N/    every file of a directory in which it ran programs: their logs and output, the
                    databases, locks; and keys files, whose keys are secrets too

A secret is at fault wherever it stands in those files, apart from the keys files themselves and the
output of `intermute init`, whose purpose it is; in a text of a WebSocket; and in an answer, its
Location included, apart from the token that registration hands out. One that is too short to be
told from a common word is a fault of the test that chose it.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SHORTEST = 8
FAULTS_SHOWN = 40

KEYS = re.compile(rb"keys:\s*\[([^\]]*)\]|^\s*-\s*(\S+)\s*$", re.MULTILINE)
TOKEN = re.compile(r'"token":"[^"]*"')


def keys_of(text):
    """The keys that stand in clear in a keys file, which may be broken."""
    found = set()
    for inline, listed in KEYS.findall(text):
        for part in (inline.split(b",") if inline else [listed]):
            key = part.strip().strip(b"'\"")
            if key and not key.startswith(b"sha256:"):
                found.add(key)
    return found


def is_keys_file(file):
    """Or what a server left of one that was killed while it made it, for its owner only."""
    name = file.name.split(".new-")[0]
    return name.endswith(".yaml") and (name == file.name or file.stat().st_mode & 0o077 == 0)


def may_hold_none(file):
    """Not so a keys file, and what `intermute init` says."""
    if is_keys_file(file):
        return False
    with file.open("rb") as text:
        return not (file.name.startswith("stdout") and text.read(9) == b"project: ")


def told(line):
    """What an answer says that may hold no secret."""
    try:
        answer = json.loads(line)
    except ValueError:  # check_answers.py says so
        return line
    hands_out = answer["method"] == "POST" and answer["target"].split("?")[0] == "/api/agents"
    body = TOKEN.sub("", answer["body"]) if hands_out else answer["body"]
    return f"{answer['location']}\n{body}"


def shown(secret):
    """Enough of it to find it, and not more: this goes into a log too."""
    return f"{secret[:4].decode(errors='replace')}… ({len(secret)} bytes)"


class Suite:
    """What one run of the suite left."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.faults = []
        self.secrets = 0
        self.files = 0
        self.bytes = 0
        pids = {p.name.split(".")[0].split("-")[0] for pattern in ("*.secrets", "*.jsonl",
                                                                   "written/*")
                for p in self.directory.glob(pattern)}
        for pid in sorted(pids):
            self.check(pid)

    def check(self, pid):
        files = [p for d in sorted(self.directory.glob(f"written/{pid}-*"))
                 for p in sorted(d.rglob("*")) if p.is_file()]
        answers = self.read(f"{pid}.jsonl").decode(errors="replace").splitlines()
        secrets = {s for s in self.read(f"{pid}.secrets").splitlines() if s}
        for file in files:
            if is_keys_file(file):
                secrets |= keys_of(file.read_bytes())
        self.secrets += len(secrets)
        for secret in sorted(secrets):
            if len(secret) < SHORTEST:
                self.faults.append(f"{pid}: the secret {secret!r} is too short to search for")
        secrets = {s for s in secrets if len(s) >= SHORTEST}
        for number, line in enumerate(answers, 1):
            self.blame(f"{pid}.jsonl:{number}", told(line).encode(), secrets)
        self.blame(f"{pid}.texts", self.read(f"{pid}.texts"), secrets)
        for file in self.suspects([f for f in files if may_hold_none(f)], secrets):
            self.blame(file.relative_to(self.directory), file.read_bytes(), secrets)

    def suspects(self, files, secrets):
        """The files with any of the secrets. grep looks for thousands of them at once."""
        self.files += len(files)
        self.bytes += sum(file.stat().st_size for file in files)
        if not files or not secrets:
            return []
        with tempfile.NamedTemporaryFile() as patterns:
            patterns.write(b"\n".join(sorted(secrets)))
            patterns.flush()
            command = ["grep", "--text", "--fixed-strings", "--files-with-matches", "--null",
                       f"--file={patterns.name}", "--"]
            found = subprocess.run(command + [str(file) for file in files],
                                   env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.PIPE)
        if found.returncode > 1:
            self.faults.append("grep could not read everything")
        return [pathlib.Path(os.fsdecode(name)) for name in found.stdout.split(b"\0") if name]

    def blame(self, where, text, secrets):
        self.faults += [f"{where} holds the secret {shown(secret)}"
                        for secret in sorted(secrets) if secret in text]

    def read(self, name):
        file = self.directory / name
        return file.read_bytes() if file.exists() else b""


def check(directory):
    """(faults, what was searched)"""
    suite = Suite(directory)
    faults = list(suite.faults)
    if suite.secrets == 0 or suite.files == 0:
        faults.append("nothing was recorded, so nothing is known")
    return faults, (f"{suite.secrets} secrets, {suite.files} files, "
                    f"{suite.bytes // 1024} KiB")


def main(directory):
    faults, searched = check(directory)
    for fault in faults[:FAULTS_SHOWN]:
        print(fault)
    print(f"{searched}: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
