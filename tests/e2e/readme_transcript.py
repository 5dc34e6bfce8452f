"""Runs the commands of README.md against a real server and compares what they print.

    readme_transcript.py README BIN_DIR            fails when the README shows something else
    readme_transcript.py README BIN_DIR --write    puts the real output into the README

A transcript is a fenced block with lines that begin with "$ "; indented lines after one belong to
the command, the others are its output. All commands run in one shell, on a terminal, in their
order. Ids, tokens, times and durations differ from run to run and count as equal; line breaks do
not count. The block "sh" is run too, and must succeed.
"""

import base64
import os
import pty
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile

PORT_SHOWN = "7338"
COLUMNS = 100
MARK = "@@end-of-command@@"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class Command:
    """A command of a transcript and the lines of the README that show its output."""

    def __init__(self, first, text):
        self.text = text  # for the shell
        self.output = (first, first)  # half-open range of line numbers


def blocks(lines, language):
    """The (start, end) of the fenced blocks, without their fences."""
    start = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = (number + 1, line[3:].strip())
        else:
            if start[1] == language:
                yield start[0], number
            start = None


def transcript(lines):
    commands = []
    for start, end in blocks(lines, ""):
        number = start
        if not lines[start].startswith("$ "):
            continue
        while number < end:
            text = lines[number][2:]
            number += 1
            while number < end and lines[number].startswith("    "):
                text += "\n" + lines[number]
                number += 1
            command = Command(number, text)
            while number < end and not lines[number].startswith("$ "):
                number += 1
            command.output = (command.output[0], number)
            commands.append(command)
    return commands


def normal(text):
    """What must be the same in the README and in a run."""
    for pattern, replacement in (
        (UUID, "ID"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}…", "ID"),
        (r'"token":"[^"]*"', '"token":"TOKEN"'),
        (r'"log_id":"[^"]*"', '"log_id":"ID"'),
        (r"\d{4}-\d\d-\d\dT[0-9:.]*Z", "TIME"),
        (r"\b(?:\d+h)?\d+[smhd] ago", "T ago"),
        (r"\bin (?:\d+h)?\d+[smhd]\b", "in T"),
        (r"\bup (?:\d+h)?\d+[smhd]\b", "up T"),
        (r"intermute \d+\.\d+\.\d+", "intermute VERSION"),
    ):
        text = re.sub(pattern, replacement, text)
    return re.sub(r"\s+", "", text)


def short(text):
    """What the README shows of real output, wrapped."""
    text = re.sub("(?P<head>[0-9a-f]{8}-[0-9a-f]{4})-[0-9a-f-]{22}", r"\g<head>…", text)
    text = re.sub(r'"(token|log_id)":"([^"]{8})[^"]*"', r'"\1":"\2…"', text)
    lines = []
    for line in text.rstrip("\n").split("\n"):
        line = line.rstrip()
        while len(line) > COLUMNS:
            end = max(line.rfind(",", 0, COLUMNS) + 1, line.rfind(" ", 0, COLUMNS))
            if end <= 0:
                break
            lines.append(line[:end])
            line = line[end:].lstrip()
        lines.append(line)
    return lines


def run_shell(script, environment, directory):
    """Everything that a shell prints on a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(directory)
        os.execve("/bin/bash", ["bash", "-c", "stty cols 160; " + script], environment)
    printed = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        printed += piece
    os.waitpid(pid, 0)
    return printed.decode().replace("\r\n", "\n")


WSDUMP = '#!/bin/sh\nexec {python} -B {script} --wsdump "$@"\n'


def wsdump(url):
    """Stands in for wsdump: prints the first event of a WebSocket."""
    host, _, path = url.removeprefix("ws://").partition("/")
    name, _, port = host.partition(":")
    with socket.create_connection((name, int(port)), timeout=20) as peer:
        key = base64.b64encode(os.urandom(16)).decode()
        peer.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        stream = peer.makefile("rb")
        while stream.readline().strip():
            pass
        size = stream.read(2)[1] & 127
        if size == 126:
            (size,) = struct.unpack(">H", stream.read(2))
        print(stream.read(size).decode())


def start_server(binaries, directory):
    server = subprocess.Popen(
        [os.path.join(binaries, "intermute"), "serve", "--port=0", "--log-level=warn"],
        cwd=directory,
        stdout=subprocess.PIPE,
        text=True,
    )
    line = server.stdout.readline()
    return server, line.rsplit(":", 1)[1].strip()


def environment_of(binaries, directory, port):
    tools = os.path.join(directory, "tools")
    os.makedirs(tools)
    os.makedirs(os.path.join(directory, "build", "release"))
    os.symlink(binaries, os.path.join(directory, "build", "release", "bin"))
    with open(os.path.join(tools, "wsdump"), "w", encoding="utf-8") as file:
        file.write(WSDUMP.format(python=sys.executable, script=os.path.abspath(__file__)))
    os.chmod(file.name, 0o755)
    return {
        "PATH": tools + ":/usr/bin:/bin",
        "HOME": directory,
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "SESSION": "s1",
        "INTERMUTE_URL": "http://127.0.0.1:" + port,
    }


def run_transcript(commands, binaries, directory):
    server, port = start_server(binaries, directory)
    try:
        script = ""
        for command in commands:
            text = command.text.replace(PORT_SHOWN, port)
            script += f"{text}\necho {shlex.quote(MARK)}\n"
        printed = run_shell(script, environment_of(binaries, directory, port), directory)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
        server.stdout.close()
    outputs = printed.replace(":" + port, ":" + PORT_SHOWN).split(MARK + "\n")
    if len(outputs) != len(commands) + 1:
        sys.exit("the shell ended early:\n" + printed)
    return outputs


def run_hooks(lines, binaries, directory):
    """The blocks of hooks succeed, and warn of nothing."""
    environment = {"PATH": binaries + ":/usr/bin:/bin", "HOME": directory, "SESSION": "s1"}
    with open(os.path.join(directory, "welcome.txt"), "w", encoding="utf-8") as file:
        file.write("welcome\n")
    count = 0
    for start, end in blocks(lines, "sh"):
        done = subprocess.run(
            ["/bin/bash", "-eu", "-c", "\n".join(lines[start:end])],
            cwd=directory, env=environment, capture_output=True, text=True, check=False,
        )
        count += 1
        if done.returncode != 0 or done.stderr:
            sys.exit(f"README line {start + 1}: exit code {done.returncode}\n{done.stderr}")
    return count


def main():
    if sys.argv[1] == "--wsdump":
        wsdump(sys.argv[-1])
        return
    readme, binaries = sys.argv[1], os.path.abspath(sys.argv[2])
    with open(readme, encoding="utf-8") as file:
        lines = file.read().split("\n")
    commands = transcript(lines)
    with tempfile.TemporaryDirectory() as directory:
        outputs = run_transcript(commands, binaries, directory)
    with tempfile.TemporaryDirectory() as directory:
        hooks = run_hooks(lines, binaries, directory)
    if len(commands) < 10 or hooks < 1:
        sys.exit("the README has hardly any commands; is its form still the one that is read here?")
    if "--write" in sys.argv:
        for command, output in reversed(list(zip(commands, outputs))):
            lines[command.output[0] : command.output[1]] = short(output) if output.strip() else []
        with open(readme, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        return
    wrong = 0
    for command, output in zip(commands, outputs):
        shown = "\n".join(lines[command.output[0] : command.output[1]])
        if normal(shown) == normal(output):
            continue
        wrong += 1
        print(f"README line {command.output[0]}: $ {command.text}\n--- shown\n{shown}\n--- printed")
        print("\n".join(short(output)))
    if wrong:
        sys.exit(f"{wrong} of {len(commands)} outputs differ; --write puts the real ones in")


if __name__ == "__main__":
    main()
