"""Ways through the broker: addresses, options, places and floods (cases 37-40); and HTTP in every language there is."""

from __future__ import annotations

import http.server
import os
import shlex
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.broker.broker import make_broker
from sandboxmcp.policy.engine import load_engine

SECRET = b"a secret of the host\n"


class Server(http.server.ThreadingHTTPServer):
    """A server of the host that the broker may not reach, unless a test says so; it counts who comes."""

    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), Answer)
        self.came = 0
        self.redirect = ""
        self.ending = threading.Event()
        self.url = f"http://{host}:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def get_request(self) -> Any:
        self.came += 1
        return super().get_request()

    def handle_error(self, *_: Any) -> None:
        pass


class Answer(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(302 if self.server.redirect else 200)
        if self.server.redirect:
            self.send_header("Location", self.server.redirect)
        self.end_headers()
        if self.path == "/slow":
            while not self.server.ending.wait(0.05):
                self.wfile.write(b"z")
                self.wfile.flush()
        self.wfile.write(SECRET)


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """One on 127.0.0.1, which the broker of these tests may reach, and one on 127.0.0.2, which it may not."""
    both = Server(), Server("127.0.0.2")
    yield both
    for one in both:
        one.ending.set()
        one.shutdown()
        one.server_close()


@pytest.fixture(scope="module")
def inside(make_inside, tmp_path_factory) -> Any:
    """A sandbox with a broker that may reach 127.0.0.1, and whose names change their answer at every look-up."""
    answers: dict[str, list[list[str]]] = {
        "mixed.example": [["127.0.0.1", "10.0.0.1"]],
        "rebinding.example": [["127.0.0.1"], ["127.0.0.2"]],
    }

    def resolver(host: str, port: int) -> list[str]:
        listed = answers.get(host)
        if listed is None:
            return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        listed.append(listed.pop(0))
        return listed[-1]

    def broker(settings: Any) -> Any:
        return make_broker(settings, load_engine().brokers(), "escape", resolver, {"SECRET_OF_THE_SERVER": "1"})

    return make_inside(make_broker=broker, network__allow_private=["127.0.0.1"], data_dir=str(tmp_path_factory.mktemp("data")))


def test_what_the_shims_run_cannot_be_changed(inside):
    code = """cd /opt/sandboxmcp
for path in shim shims/curl python guest/shims/start.py; do
  echo x > $path || echo kept; rm -f $path || echo kept; mv $path gone || echo kept
done
umount shim || echo kept
curl --version | head -n 1"""
    assert inside.run(code, "shell").text == "kept\n" * 13 + "curl (sandboxmcp)\n"


# 37: where a request goes


REDIRECTED = "http://127.0.0.2:{other}/ file:///etc/hostname http://[::ffff:127.0.0.2]:{other}/ http://127.0.0.2.:{other}/".split()


@pytest.mark.parametrize("target", REDIRECTED)
def test_a_redirect_leads_nowhere_that_is_refused(servers, inside, target):
    allowed, other = servers
    allowed.redirect = target.replace("{other}", str(other.server_port))
    shell = inside.run(f"rm -f f; curl -sSL -o f {allowed.url}/; echo $?; cat f", "shell")
    assert (shell.text.split("\n")[0] != "0", SECRET in shell.stdout, other.came) == (True, False, 0)


def test_a_redirect_to_another_server_works_outside(attempt, servers):
    allowed, other = servers
    allowed.redirect = other.url
    both = attempt(f"rm -f f; curl -sSL -o f {allowed.url}/; cat f", "shell")
    assert (SECRET.decode() in both.outside.stdout, SECRET in both.inside.stdout, other.came) == (True, False, 1)


@pytest.mark.parametrize("name", ["mixed.example", "rebinding.example"])
def test_a_name_with_a_private_answer_now_or_later_is_refused(servers, inside, name):
    allowed, other = servers
    command = f"curl -sS -o f http://{name}:{other.server_port}/; echo $?"
    assert {inside.run(command, "shell").text for _ in range(2)} == {"7\n"}
    assert (allowed.came, other.came) == (0, 0)


SPELLED = (
    "127.2 127.0.2 0x7f.2 0x7f000002 2130706434 017700000002 127.0.0.02 127.0.0.2. [::ffff:127.0.0.2] [::ffff:7f00:2] "
    "[64:ff9b::7f00:2] user@127.0.0.2 127.0.0.2%2f@example.org 127.0.0.2#@example.org"
).split()


def test_another_spelling_of_a_refused_address_is_refused(servers, inside):
    port = servers[1].server_port
    commands = [f"curl -sS -o f 'http://{host}:{port}/' || echo refused" for host in SPELLED]
    ran = inside.run("rm -f f\n" + "\n".join(commands) + "\ncat f 2>/dev/null", "shell", 40.0)
    assert (ran.text, servers[1].came) == ("refused\n" * len(SPELLED), 0)


# 38 and 39: what an option could do


SMUGGLED = {
    "a config": "-o f -K config {url}",
    "a config in a cluster": "-fK config -o f {url}",
    "an abbreviation": "--conf config -o f {url}",
    "another command line": "-o f {url} --next -d @/etc/passwd {url}",
    "in parallel": "-Z -o f {url}",
    "a file in the body": "-d @/etc/passwd -o f {url}",
    "a file in the query": "-G --data-urlencode n@/etc/passwd -o f {url}",
    "a file as a header": "-H @/etc/passwd -o f {url}",
    "a file as a format": "-w @/etc/passwd -o f {url}",
    "an output by format": "-w '%output{{evil}}' -o f {url}",
    "another host's proxy": "-x {other} -o f {url}",
    "another host's address": "--connect-to ::127.0.0.2:{port} -o f {url}",
    "standard output": "-o /dev/stdout {url}",
    "a link to it": "-o link {url}",
    "a descriptor": "-o /dev/fd/1 {url}",
    "a FIFO": "-o fifo {url}",
    "above everything": "-o ../../../../../../etc/evil {url}",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_an_option_smuggles_nothing(servers, inside, name):
    allowed, other = servers
    arguments = SMUGGLED[name].format(url=allowed.url, other=other.url, port=other.server_port)
    prepare = "rm -rf f evil link fifo; ln -s /dev/stdout link; mkfifo fifo; echo 'output = evil' > config"
    ran = inside.run(f"{prepare}; curl -sS {arguments}; echo $?; ls f evil 2>/dev/null", "shell")
    assert (ran.text != "0\n", SECRET in ran.stdout, ran.text.count("\n"), allowed.came, other.came) == (True, False, 1, 0, 0)


def test_a_file_named_like_a_pattern_is_one_file(servers, inside):
    inside.run(f"rm -rf *; curl -sS -o 'f#1' '{servers[0].url}/[1-9]'", "shell")
    assert (os.listdir(inside.workspace), servers[0].came) == (["f#1"], 1)


WGET = {
    "a program": "-q --use-askpass=./evil -O f {url}",
    "a command": "-q -e use_askpass=./evil -O f {url}",
    "a config": "-q --config=config -O f {url}",
    "URLs from a file": "-q -i urls",
    "standard output": "-q -O - {url}",
    "a name of the server's": "-q --content-disposition {url}/",
    "a name of the redirect's": "-q --trust-server-names {url}/",
    "a file in the body": "-q --post-file=/etc/passwd -O f {url}",
    "everything below": "-q -r {url}",
}


@pytest.mark.parametrize("name", WGET)
def test_wget_smuggles_nothing(servers, inside, name):
    arguments = WGET[name].format(url=servers[0].url)
    prepare = (
        f"rm -rf *; printf '#!/bin/sh\\ntouch ran' > evil; chmod +x evil; echo {servers[0].url} > urls; echo 'quiet = on' > config"
    )
    ran = inside.run(f"{prepare}; wget {arguments}; echo $?; ls | wc -l; ls ran 2>/dev/null", "shell")
    assert (ran.text.splitlines()[0] != "0", ran.text.splitlines()[1:], servers[0].came) == (True, ["3"], 0)


def test_the_settings_of_the_script_are_not_the_real_programs(servers, inside):
    prepare = "printf 'url = file:///etc/passwd\\noutput = evil\\n' > ~/.curlrc; cp ~/.curlrc .curlrc"
    variables = f"export CURL_HOME=$PWD http_proxy={servers[1].url}"
    ran = inside.run(f"rm -rf *; {prepare}; {variables}; curl -sS -o f {servers[0].url}; cat f; ls", "shell")
    assert (ran.stdout, servers[1].came) == (SECRET + b"f\n", 0)


# 40: what a shim could do


def test_a_killed_shim_leaves_nothing_running(servers, inside):
    inside.run(f"timeout -s KILL 0.5 curl -sS -o f {servers[0].url}/slow", "shell")
    waited = threading.Event()
    for _ in range(100):
        if not any(thread.name == "sandboxmcp-request" for thread in threading.enumerate()):
            break
        waited.wait(0.05)
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert [line for line in running if servers[0].url.encode() in line] == []


def test_the_server_has_nothing_in_the_box_that_a_script_could_ask_for(servers, inside):
    ran = inside.run(
        f"curl -sS -A '%{{SECRET_OF_THE_SERVER}}' -o f -w '%{{url}}' {servers[0].url}/$SECRET_OF_THE_SERVER; env", "shell"
    )
    assert "SECRET_OF_THE_SERVER" not in ran.text


def test_the_broker_of_one_sandbox_is_not_anothers(make_inside, servers, inside):
    inside.run("true", "shell")
    other = make_inside()
    connect = "socket.socket(socket.AF_UNIX).connect('\\0sandboxmcp/broker')"
    code = f"import socket\ntry: {connect}\nexcept OSError as error: print(error.errno)"
    assert other.run(code).text == "111\n"


# HTTP in every language


GET = r"GET / HTTP/1.0\r\n\r\n"
PERL = "print $s qq(GET / HTTP/1.0\\r\\n\\r\\n); print <$s>"
GO = """package main
import ("io"; "net/http"; "os")
func main() { r, e := http.Get("URL"); if e != nil { os.Exit(1) }; io.Copy(os.Stdout, r.Body) }"""
CSHARP = 'class P { static void Main() { System.Console.Write(new System.Net.WebClient().DownloadString("URL")); } }'
PYTHON = "import http.client, socket, urllib.request"
EXIT = "() => process.exit(1)"
LANGUAGES = {
    "python urllib": ("python3 -c", f'{PYTHON}; print(urllib.request.urlopen("URL", timeout=3).read())'),
    "python http.client": ("python3 -c", f'{PYTHON}; c = http.client.HTTPConnection("HOST", PORT, 3); c.request("GET", "/")'),
    "python socket": ("python3 -c", f'{PYTHON}; s = socket.create_connection(("HOST", PORT), 3); s.sendall(b"{GET}")'),
    "bash": ("bash -c", f'exec 3<>/dev/tcp/HOST/PORT && printf "{GET}" >&3 && cat <&3'),
    "perl HTTP::Tiny": ("perl -MHTTP::Tiny -e", 'exit !HTTP::Tiny->new(timeout => 3)->get("URL")->{success}'),
    "perl socket": ("perl -MIO::Socket::INET -e", f'$s = IO::Socket::INET->new(PeerAddr => "HOST:PORT") or exit 1; {PERL}'),
    "node fetch": ("node -e", f'fetch("URL").then(r => r.text()).then(console.log, {EXIT})'),
    "node http": ("node -e", f'require("http").get("URL", r => r.pipe(process.stdout)).on("error", {EXIT})'),
    "node net": ("node -e", f'require("net").connect(PORT, "HOST", function() {{ this.end("{GET}") }}).on("error", {EXIT})'),
    "ruby": ("ruby -rnet/http -e", 'puts Net::HTTP.get(URI("URL"))'),
    "php": ("php -r", 'echo file_get_contents("URL") ?: exit(1);'),
    "Rscript": ("Rscript -e", 'cat(readLines("URL"))'),
    "elixir": ("elixir -e", ':inets.start(); {:ok, r} = :httpc.request(~c"URL"); IO.inspect(r)'),
    "go": ('f() { printf %s "$1" > m.go && GOCACHE=$PWD/cache go run m.go; }; f', GO),
    "mcs": ('f() { printf %s "$1" > m.cs && mcs m.cs && mono m.exe; }; f', CSHARP),
    "curl": ("/usr/bin/curl -sS -m 3", "URL"),
    "wget": ("/usr/bin/wget -q -T 3 -t 1 -O -", "URL"),
    "git": ("git ls-remote", "URL/x.git"),
    "openssl": ("echo | timeout 3 openssl s_client -connect", "HOST:PORT"),
}
"""Language and way → how to start it, and its code. Outside, each really asks the server."""


@pytest.mark.parametrize("way", LANGUAGES)
def test_http_in_a_language_puts_nothing_on_the_wire(inside, servers, way):
    program, code = way.split()[0].replace("python", "python3"), LANGUAGES[way][1]
    if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
        pytest.skip(f"{program} is not installed")
    server = servers[0]
    filled = code.replace("URL", server.url).replace("HOST", "127.0.0.1").replace("PORT", str(server.server_port))
    command = f"cd $(mktemp -d); {LANGUAGES[way][0]} {shlex.quote(filled)}"
    subprocess.run(["bash", "-c", command], capture_output=True, timeout=20, check=False)
    came = server.came
    ran = inside.run(command, "shell")
    assert (came >= 1, server.came - came, ran.outcome.status) == (True, 0, "failed")
