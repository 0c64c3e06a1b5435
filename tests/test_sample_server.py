"""Downloads from a server that breaks connections, knows no ranges, changes its mind, or lies about its files."""

import hashlib
import http.server
import random
import threading

import pytest

from photonlab import cli
from photonlab.errors import UserError
from photonlab.systems import sample_server

DAY = "01302019.NASDAQ_ITCH50.gz"
BODY = random.Random(1).randbytes(300_000)


class Server(http.server.ThreadingHTTPServer):
    """Serves `files`; each answer ends after `at_most` bytes; `refuse` answers with that status so many times."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.tag, self.at_most, self.ranges, self.refuse, self.asked = (
            {DAY: BODY},
            '"1"',
            1 << 30,
            True,
            [],
            [],
        )
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/samples/"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)

    def answer(self, body):
        server, name = self.server, self.path.rsplit("/", 1)[-1]
        server.asked.append((name, self.headers.get("Range")))
        if not name:
            links = "".join(f'<a href="{one}">{one}</a><br>' for one in server.files)
            return self.give(200, f'<a href="?C=N">sort</a><a href="/">up</a>{links}'.encode(), body, {}, 1 << 30)
        if name not in server.files:
            return self.send_error(404)
        if server.refuse and body:
            return self.send_error(server.refuse.pop())
        data, extra, status = server.files[name], {"ETag": server.tag}, 200
        begin = self.headers.get("Range", "")
        if begin and server.ranges and self.headers.get("If-Range") == server.tag:
            at = int(begin.removeprefix("bytes=").removesuffix("-"))
            extra["Content-Range"] = f"bytes {at}-{len(data) - 1}/{len(data)}"
            data, status = data[at:], 206
        return self.give(status, data, body, extra, server.at_most)

    def give(self, status, data, body, extra, at_most):
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(data))} | extra).items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(data[:at_most])
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as one:
        yield one
        one.shutdown()


def fetch(server, folder, **options):
    return sample_server.fetch(DAY, folder, server.address, pause=0.001, timeout=5, **options)


def test_listing(server):
    server.files["a b%20c.gz"] = b"x"
    plain = sample_server.listing(server.address)
    assert [offer.name for offer in plain] == [DAY, "a b c.gz"] and plain[0].size is None
    assert sample_server.listing(server.address, sizes=True)[0].size == len(BODY)


def test_whole(server, tmp_path):
    seen = []
    path = fetch(server, tmp_path / "new", progress=lambda *done: seen.append(done))
    assert path.read_bytes() == BODY and seen[-1] == (len(BODY), len(BODY))
    assert [one.name for one in path.parent.iterdir()] == [DAY]
    asked = len(server.asked)
    assert fetch(server, tmp_path / "new") == path and len(server.asked) == asked + 1, "what is whole is not got again"


def test_broken_connections_are_gone_on_with(server, tmp_path):
    server.at_most = 70_000
    assert fetch(server, tmp_path).read_bytes() == BODY
    assert [begin for name, begin in server.asked if name == DAY] == [
        None, "bytes=70000-", "bytes=140000-", "bytes=210000-", "bytes=280000-",
    ]  # fmt: skip


def test_a_later_process_goes_on(server, tmp_path):
    (tmp_path / f"{DAY}.part").write_bytes(BODY[:1000])
    (tmp_path / f"{DAY}.part.json").write_text('{"tag": "\\"1\\"", "size": 300000}')
    server.at_most = 0
    with pytest.raises(UserError, match="2 times in a row; 1,000 of 300,000 bytes are kept in"):
        fetch(server, tmp_path, attempts=2)
    server.at_most = 1 << 30
    assert fetch(server, tmp_path).read_bytes() == BODY
    assert {begin for name, begin in server.asked if name == DAY} == {"bytes=1000-"}


def test_a_changed_file_is_begun_anew(server, tmp_path):
    (tmp_path / f"{DAY}.part").write_bytes(b"old" * 1000)
    (tmp_path / f"{DAY}.part.json").write_text('{"tag": "\\"0\\"", "size": 9999999}')
    assert fetch(server, tmp_path).read_bytes() == BODY


def test_a_part_of_unknown_origin_is_begun_anew(server, tmp_path):
    (tmp_path / f"{DAY}.part").write_bytes(b"old" * 1000)
    assert fetch(server, tmp_path).read_bytes() == BODY


def test_without_ranges_it_begins_anew(server, tmp_path):
    server.ranges = False
    (tmp_path / f"{DAY}.part").write_bytes(BODY[:1000])
    (tmp_path / f"{DAY}.part.json").write_text('{"tag": "\\"1\\"", "size": 300000}')
    assert fetch(server, tmp_path).read_bytes() == BODY


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.refuse = [503, 429, 500]
    assert fetch(server, tmp_path).read_bytes() == BODY


def test_checksums(server, tmp_path):
    server.files[f"{DAY}.md5"] = f"{hashlib.md5(BODY).hexdigest()}  {DAY}\n".encode()
    assert fetch(server, tmp_path / "good").exists()
    server.files[f"{DAY}.md5"] = b"0" * 32
    with pytest.raises(UserError, match="came damaged: its md5"):
        fetch(server, tmp_path / "bad")
    assert list((tmp_path / "bad").iterdir()) == []


def test_errors_are_one_line(server, tmp_path, capsys):
    base = ["fetch", "--from", server.address, "--out", str(tmp_path)]
    assert cli.main([*base, "nothing.gz"]) == 2 and "offers no 'nothing.gz'" in capsys.readouterr().err
    assert cli.main(["fetch", "--from", "ftp://x/"]) == 2 and "http://" in capsys.readouterr().err
    assert cli.main(["fetch", "--from", "http://127.0.0.1:9/"]) == 2 and "cannot be reached" in capsys.readouterr().err
    server.refuse = [404]
    assert cli.main([*base, DAY]) == 2 and "404" in capsys.readouterr().err
    assert cli.main([*base, DAY]) == 0 and capsys.readouterr().out.strip() == str(tmp_path / DAY)
    assert cli.main(base[:3]) == 0 and capsys.readouterr().out.split() == [DAY]


def test_two_at_a_time_are_refused(server, tmp_path):
    with (tmp_path / f"{DAY}.part").open("ab") as file:
        sample_server.fcntl.flock(file, sample_server.fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another process"):
            fetch(server, tmp_path)


def test_no_room(server, tmp_path, monkeypatch):
    monkeypatch.setattr(sample_server.shutil, "disk_usage", lambda _: sample_server.shutil._ntuple_diskusage(1, 1, 10))
    with pytest.raises(UserError, match="300,000 bytes are still to come, 10 are free"):
        fetch(server, tmp_path)
