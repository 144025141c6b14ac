"""Output arrives byte for byte, under a cap that counts, without the server's memory growing."""

from __future__ import annotations

import hashlib
import os
import resource

import pytest

from sandboxmcp.render.reasons import said


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "import sys; sys.stdout.buffer.write(bytes(range(256)))\nNone", bytes(range(256))),
        ("python", "import os; os.write(1, b'no newline')\nNone", b"no newline"),
        ("python", "import os; os.write(1, ('\\u00e9\\u20ac\\U0001f600' * 20011).encode())\nNone", "é€😀".encode() * 20011),
        ("python", "print('\\udcff')", b"\xff\n"),
        ("python", "print('a\\0b\\x1b[31mred\\x1b[0m\\rc')", b"a\0b\x1b[31mred\x1b[0m\rc\n"),
        ("python", "import sys; sys.stdout = None; import os; os.system('echo child')\nNone", b"child\n"),
        ("python", "import os; os.close(1)\nNone", b""),
        ("python", "for i in range(3): print(i, flush=True)", b"0\n1\n2\n"),
        ("shell", "printf 'a\\0b\\377'", b"a\0b\xff"),
    ],
)
def test_stdout_is_kept_byte_for_byte(inside, language, code, expected):
    ran = inside.run(code, language)
    assert (ran.stdout, ran.outcome.stdout.total) == (expected, len(expected))


def test_stderr_is_apart_from_stdout(inside):
    ran = inside.run("echo out; echo err >&2", "shell")
    assert (ran.stdout, ran.stderr) == (b"out\n", b"err\n")


def test_two_hundred_megabytes_pass_without_the_servers_memory_growing(inside):
    inside.run("print(1)")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = inside.run("head -c 200000000 /dev/zero | tr '\\0' x", "shell", timeout_s=60)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    with ran.outcome.stdout.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    ran.outcome.stdout.path.unlink()
    expected = hashlib.sha256()
    for _ in range(200):
        expected.update(b"x" * 1_000_000)
    assert (ran.outcome.stdout.total, digest) == (200_000_000, expected.hexdigest())
    assert grown_kib < 20 << 10


def test_beyond_the_cap_bytes_are_counted_and_the_writer_is_not_blocked(make_inside):
    own = make_inside(limits__output="1MiB")
    ran = own.run("import os\nfor _ in range(100): os.write(1, b'x' * 1_000_000)\nprint('end')\nNone")
    assert (ran.outcome.status, ran.outcome.stdout.total, ran.outcome.stdout.kept) == ("ok", 100_000_004, 1 << 20)
    assert ran.stdout == b"x" * (1 << 20)


def test_a_million_flushed_lines_all_arrive(inside):
    ran = inside.run("for i in range(100_000): print(i, flush=True)", timeout_s=60)
    assert ran.stdout == b"".join(b"%d\n" % i for i in range(100_000))


def test_a_flood_of_displays_neither_hangs_nor_hides_the_end(inside):
    code = "from IPython.display import HTML, display\nfor i in range(3000): display(HTML('<i>%d</i>' % i))\nprint('end')"
    ran = inside.run(code, timeout_s=60)
    assert (ran.outcome.status, ran.text.splitlines()[-1], len(ran.outcome.artifacts)) == ("ok", "end", 64)
    assert "2936 displayed results beyond the first 64 were not kept" in said(ran.outcome.reasons)


def test_no_descriptor_is_left_behind(inside):
    def held() -> int:
        links = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]
        return sum(str(inside.runner._captures) in link for link in links)

    for _ in range(20):
        inside.run("echo one", "shell")
    assert held() <= 2  # the streams of the spare kernel
