"""Downloads, from a real server on this machine that can be told to misbehave."""

import io
import os
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lmlab.core.errors import DataError, UnknownName
from lmlab.data import fetch as module
from lmlab.data.corpora import Corpus
from lmlab.data.fetch import by_hand, fetch, find
from lmlab.data.files import read_librispeech

BODY = bytes(range(256)) * 4000  # a megabyte


class Server(ThreadingHTTPServer):
    """Answers as its `script` says, one entry a request; the last one stays. `ranges` are those that were asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.script, self.ranges = BODY, ["whole"], list[str]()

    def address(self, name: str = "corpus.txt") -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        mode = server.script.pop(0) if len(server.script) > 1 else server.script[0]
        asked = self.headers.get("Range", "")
        server.ranges.append(asked)
        first = int(asked.removeprefix("bytes=").rstrip("-")) if asked and mode != "no ranges" else 0
        if mode.isdecimal() or first >= len(server.body):
            self.send_error(int(mode) if mode.isdecimal() else 416)
            return
        if mode.startswith("to "):
            self.send_response(302)
            self.send_header("Location", mode.removeprefix("to "))
            self.end_headers()
            return
        body = server.body[first:]
        if mode == "wrong":
            body = bytes(len(body))
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(server.body) - 1}/{len(server.body)}")
        if mode not in ("no length", "endless"):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if mode in ("cut", "slow"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            time.sleep(2 if mode == "slow" else 0)
            return
        try:
            self.wfile.write(body)
            while mode == "endless":
                self.wfile.write(body)
        except OSError:
            pass  # the other side has had enough

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def entry(server) -> Corpus:
    return Corpus(
        "small", "A small corpus", "text", "public domain", server.address(), len(BODY), sha256(BODY).hexdigest()
    )


def refusal(*arguments, **options) -> str:
    with pytest.raises(DataError) as caught:
        fetch(*arguments, loopback=True, timeout=0.5, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_download_gets_its_name_when_it_is_whole(entry, tmp_path):
    seen: list[tuple[int, int]] = []
    path = fetch(entry, tmp_path / "new" / "folder", loopback=True, progress=lambda *numbers: seen.append(numbers))
    assert path == tmp_path / "new" / "folder" / "small.txt"
    assert path.read_bytes() == BODY
    assert seen == sorted(seen)
    assert seen[-1] == (len(BODY), len(BODY))
    assert not list(path.parent.glob("*.part"))


def test_what_is_there_is_not_downloaded_again(server, entry, tmp_path):
    path = fetch(entry, tmp_path, loopback=True)
    assert fetch(entry, tmp_path) == find(entry, tmp_path) == path
    assert len(server.ranges) == 1


def test_a_cut_connection_is_taken_up_again(server, entry, tmp_path):
    server.script = ["cut", "503", "cut", "503", "cut", "whole"]
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY
    assert server.ranges == ["", *(f"bytes={n}-" for n in (512_000, 512_000, 768_000, 768_000, 896_000))]


def test_the_next_call_goes_on_where_one_stopped(server, entry, tmp_path):
    server.script = ["cut", "404"]
    message = refusal(entry, tmp_path)
    part = tmp_path / "small.txt.part"
    assert f"512,000 of 1,024,000 bytes are kept in {part}" in message
    assert part.read_bytes() == BODY[:512_000]
    assert find(entry, tmp_path) is None
    server.script = ["whole"]
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY
    assert server.ranges[-1] == "bytes=512000-"


def test_a_server_without_ranges_sends_everything(server, entry, tmp_path):
    server.script = ["cut", "no ranges"]
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY


def test_a_part_that_is_already_whole_needs_no_server(server, entry, tmp_path):
    (tmp_path / "small.txt.part").write_bytes(BODY)
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY
    assert not server.ranges


def test_a_part_that_is_too_long_is_thrown_away(server, entry, tmp_path):
    (tmp_path / "small.txt.part").write_bytes(BODY + b"more")
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY
    assert server.ranges == [""]


def test_wrong_bytes_are_named_removed_and_not_used(server, entry, tmp_path):
    server.script = ["wrong"]
    message = refusal(entry, tmp_path)
    assert str(tmp_path / "small.txt.part") in message
    assert entry.sha256 in message
    assert sha256(bytes(len(BODY))).hexdigest() in message
    assert not list(tmp_path.glob("*.txt*"))
    server.script = ["whole"]
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY


def test_bytes_of_another_version_in_the_part_are_noticed(entry, tmp_path):
    (tmp_path / "small.txt.part").write_bytes(b"another beginning")
    assert "is damaged and was removed" in refusal(entry, tmp_path)
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY


@pytest.mark.parametrize("mode", ["404", "403", "503"])
def test_a_servers_refusal_says_what_to_do(server, entry, tmp_path, mode):
    server.script = [mode]
    message = refusal(entry, tmp_path)
    assert f"the server answers {mode}" in message
    assert f"save {entry.address} as {tmp_path / 'small.txt'} (1,024,000 bytes, sha256 {entry.sha256})" in message
    assert len(server.ranges) == (2 if mode == "503" else 1)


def test_a_server_that_falls_silent(server, entry, tmp_path):
    server.script = ["slow", "404"]
    started = time.monotonic()
    assert "512,000 of 1,024,000 bytes are kept" in refusal(entry, tmp_path)
    assert time.monotonic() - started < 2


def test_a_file_that_has_changed_its_size(server, entry, tmp_path):
    server.body = BODY[:-1]
    assert "has 1,023,999 bytes where 1,024,000 are expected" in refusal(entry, tmp_path)
    server.body, server.script = BODY[:1000], ["no length"]
    assert "could not be downloaded" in refusal(entry, tmp_path)
    assert find(entry, tmp_path) is None


def test_a_server_that_does_not_stop(server, entry, tmp_path):
    server.script = ["endless"]
    assert "more than the 1,024,000 bytes" in refusal(entry, tmp_path)
    assert not list(tmp_path.glob("*.txt*"))


def test_offline(server, entry, tmp_path):
    server.server_close()  # nobody listens there any more
    message = refusal(entry, tmp_path)
    assert f"{entry.address} cannot be reached" in message
    assert "refused" in message
    assert by_hand(entry, tmp_path) in message
    assert str(tmp_path / "small.txt") in message


def test_a_file_put_there_by_hand_is_checked_and_used(server, entry, tmp_path):
    path = tmp_path / "small.txt"
    path.write_bytes(BODY[:-1])
    message = refusal(entry, tmp_path)
    assert f"{path} is not A small corpus: it has 1,023,999 bytes" in message
    path.write_bytes(bytes(len(BODY)))
    assert "its sha256 is" in refusal(entry, tmp_path)
    assert path.exists()  # it is the user's own
    path.write_bytes(BODY)
    assert fetch(entry, tmp_path) == path
    assert not server.ranges


def test_without_a_pinned_checksum_the_first_download_is_recorded(server, entry, tmp_path):
    entry = replace(entry, sha256="")
    (tmp_path / "small.txt.part").write_bytes(BODY[:1000])  # could be of any version: not gone on with
    path = fetch(entry, tmp_path, loopback=True)
    assert server.ranges == [""]
    assert (tmp_path / "small.txt.sha256").read_text() == f"{sha256(BODY).hexdigest()}  small.txt\n"
    assert find(entry, tmp_path) == path
    path.write_bytes(bytes(len(BODY)))
    assert "its sha256 is" in refusal(entry, tmp_path)
    path.unlink()
    server.script = ["wrong"]
    assert "is damaged and was removed" in refusal(entry, tmp_path)


# --- addresses


@pytest.mark.parametrize(
    "address",
    ["http://example.org/a.txt", "ftp://example.org/a.txt", "file:///etc/passwd", "http://127.0.0.1.example.org/"],
)
def test_only_https_is_fetched(entry, tmp_path, address):
    for loopback in (False, True):
        with pytest.raises(DataError, match="only https addresses are fetched"):
            fetch(replace(entry, address=address), tmp_path, loopback=loopback)


def test_http_to_this_machine_must_be_allowed(server, entry, tmp_path):
    with pytest.raises(DataError, match="only https"):
        fetch(entry, tmp_path)
    assert not server.ranges


def test_redirections_are_held_to_the_same_rule(server, entry, tmp_path):
    for target in ("http://example.org/a.txt", "file:///etc/passwd", "ftp://127.0.0.1/x", "//", "http://[bad"):
        server.script = [f"to {target}"]
        assert refusal(entry, tmp_path)
        assert not list(tmp_path.glob("*.txt*"))
    server.script = ["to http://example.org/a.txt"]
    assert "only https addresses are fetched; got 'http://example.org/a.txt'" in refusal(entry, tmp_path)
    server.script = [f"to {server.address('moved.txt')}", "cut", f"to {server.address('moved.txt')}", "whole"]
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY
    assert server.ranges[-1] == "bytes=512000-"  # asked of the new address too


def test_names(tmp_path):
    with pytest.raises(UnknownName, match="Did you mean tinystories"):
        fetch("tinystorys", tmp_path)
    with pytest.raises(DataError, match="nothing to fetch"):
        fetch("stories", tmp_path)
    assert find("tinyshakespeare", tmp_path) is None


# --- archives


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


GOOD = archive(
    (member("LibriSpeech/LICENSE.TXT"), b"free"),
    (member("LibriSpeech/dev-clean/1/2/1-2-0000.flac"), bytes(100_000)),
    (member("LibriSpeech/dev-clean/1/2/1-2.trans.txt"), b"1-2-0000 HELLO THERE\n1-2-0001 GOOD DAY\n"),
    (member("LibriSpeech/dev-clean/1/3/1-3.trans.txt"), b"1-3-0000 IT'S LATE\n"),
)


def packed(server: Server, content: bytes) -> Corpus:
    server.body = content
    address = server.address("speech.tar.gz")
    return Corpus("speech", "Speech", "utterances", "CC BY 4.0", address, len(content), sha256(content).hexdigest())


def everything(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir()}


def test_only_the_transcripts_of_an_archive_are_kept(server, tmp_path):
    entry = packed(server, GOOD)
    tree = fetch(entry, tmp_path, loopback=True)
    assert tree == tmp_path / "speech"
    assert read_librispeech(tree) == ["HELLO THERE", "GOOD DAY", "IT'S LATE"]
    assert everything(tree) == {f"LibriSpeech/dev-clean/1/{n}/1-{n}.trans.txt" for n in (2, 3)}
    assert not (tmp_path / "speech.tar.gz").exists()
    assert fetch(entry, tmp_path) == find(entry, tmp_path) == tree
    assert len(server.ranges) == 1


def test_an_archive_put_there_by_hand_is_used_and_left_alone(server, tmp_path):
    entry = packed(server, GOOD)
    (tmp_path / "speech.tar.gz").write_bytes(GOOD)
    assert len(read_librispeech(fetch(entry, tmp_path, loopback=True))) == 3
    assert (tmp_path / "speech.tar.gz").exists()
    assert not server.ranges


def test_transcripts_that_were_changed_are_noticed(server, tmp_path):
    entry = packed(server, GOOD)
    tree = fetch(entry, tmp_path, loopback=True)
    (tree / "LibriSpeech/dev-clean/1/3/1-3.trans.txt").write_text("1-3-0000 SOMETHING ELSE\n")
    assert f"{tree} is not as it was unpacked" in refusal(entry, tmp_path)


@pytest.mark.parametrize(
    "bad",
    [
        member("../out.trans.txt"),
        member("LibriSpeech/../../out.trans.txt"),
        member("/tmp/out.trans.txt"),
        member("C:\\out.trans.txt"),
        member("link.trans.txt", tarfile.SYMTYPE, "/etc/passwd"),
        member("link.trans.txt", tarfile.LNKTYPE, "../../secret"),
        member("device.trans.txt", tarfile.CHRTYPE),
        member("pipe.trans.txt", tarfile.FIFOTYPE),
        member("folder.trans.txt", tarfile.DIRTYPE),
    ],
    ids=lambda info: info.name,
)
def test_an_archive_that_reaches_outside_is_refused(server, tmp_path, bad):
    entry = packed(server, archive((member("a/1.trans.txt"), b"1 FINE\n"), (bad, b"")))
    folder = tmp_path / "corpora" / "here"
    message = refusal(entry, folder)
    assert repr(bad.name) in message
    assert everything(tmp_path) <= {"corpora/here/speech.tar.gz", "corpora/here/.speech.lock"}


def test_links_in_an_archive_lead_nowhere(server, tmp_path):
    """A link that is not a transcript is not made, so nothing can be written through it."""
    content = archive(
        (member("a", tarfile.SYMTYPE, str(tmp_path / "outside")), b""), (member("a/1.trans.txt"), b"1 FINE\n")
    )
    tree = fetch(packed(server, content), tmp_path / "here", loopback=True)
    assert (tree / "a" / "1.trans.txt").read_bytes() == b"1 FINE\n"
    assert not (tree / "a").is_symlink()
    assert not (tmp_path / "outside").exists()


def test_archives_that_cannot_be_used(server, tmp_path, monkeypatch):
    assert "has no *.trans.txt" in refusal(packed(server, archive((member("a.flac"), b"x"))), tmp_path / "1")
    assert "cannot be unpacked" in refusal(packed(server, b"not an archive"), tmp_path / "2")
    assert "cannot be unpacked" in refusal(packed(server, GOOD[: len(GOOD) // 2]), tmp_path / "3")
    monkeypatch.setattr(module, "LARGEST_FILE", 1000)
    big = archive((member("a.trans.txt"), b"1 LONG\n" * 1000))
    assert "more than 1,000 bytes of transcripts" in refusal(packed(server, big), tmp_path / "4")
    assert not list(tmp_path.rglob("*.trans.txt"))


# --- the folder


def test_two_processes_do_not_write_at_once(entry, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with open(tmp_path / ".small.lock", "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "another process is fetching small" in refusal(entry, tmp_path)
    assert fetch(entry, tmp_path, loopback=True).exists()


def test_a_folder_that_cannot_be_used(entry, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "cannot be kept in" in refusal(entry, tmp_path / "file" / "folder")
    (tmp_path / "small.txt").mkdir()
    assert "is not A small corpus" in refusal(entry, tmp_path)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "small.txt").write_bytes(BODY)
    (tmp_path / "secret" / "small.txt").chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # the superuser may read everything
    try:
        with pytest.raises(DataError, match=r"cannot be kept in .*: Permission denied"):
            find(entry, tmp_path / "secret")
    finally:
        os.seteuid(user)


def test_a_program_that_is_killed_leaves_only_a_part(entry, tmp_path):
    def stop(have: int, size: int) -> None:
        if have > size // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(entry, tmp_path, loopback=True, progress=stop)
    assert find(entry, tmp_path) is None
    assert 0 < os.path.getsize(tmp_path / "small.txt.part") < len(BODY)
    assert fetch(entry, tmp_path, loopback=True).read_bytes() == BODY
