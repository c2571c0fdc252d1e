"""Downloads of the catalogue's corpora: checked, resumable, and never used before they are whole.

    <folder>/tinyshakespeare.txt          a text, as it was published
    <folder>/tinyshakespeare.txt.part     a download under way; the next `fetch` goes on where it stopped
    <folder>/librispeech/…/*.trans.txt    the transcripts of an archive
    <folder>/….sha256                     recorded where the catalogue has no checksum

A download gets its name only after its size and checksum were found right. A file put there by hand is checked too.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.client import HTTPException, HTTPMessage
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from lmlab.core.errors import DataError
from lmlab.data.corpora import Corpus, corpora
from lmlab.data.files import LARGEST_FILE

try:
    import fcntl
except ImportError:  # not on this system: two downloads at once are then caught by the checksum only
    fcntl = None

Progress = Callable[[int, int], None]
"""Called with the bytes that have come and the bytes there are."""
ATTEMPTS: Final = 50
"""How often a broken connection is taken up again within one call, at most."""
CHUNK: Final = 2**18


class Interrupted(Exception):
    """The connection failed; what has come so far can be gone on with."""


def fetch(
    name: str | Corpus,
    folder: str | Path,
    *,
    opener: OpenerDirector | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
    loopback: bool = False,
) -> Path:
    """The path of a corpus in the folder, downloaded if it is not there: a text file, or the folder of an archive.

    Only the catalogue's https addresses are opened, also when a server redirects; `loopback` allows http to this
    very machine, for tests. `timeout` is in seconds without a byte.
    """
    entry, folder = _entry(name), Path(folder)
    if (found := find(entry, folder)) is not None:
        return found
    _check_address(entry.address, loopback)
    with _kept(entry, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder, entry):
            if (found := find(entry, folder)) is not None:  # another process was faster
                return found
            path = folder / entry.file
            if given := path.exists():  # an archive put there by hand
                _verify(path, entry, path)
            else:
                part = path.with_name(path.name + ".part")
                _download(entry, part, opener or _opener(loopback), progress, timeout)
                _verify(part, entry, path)
                os.replace(part, path)
                _sync(folder)
            if not entry.archive:
                return path
            _unpack(path, folder / entry.name)
            if not given:
                path.unlink()  # the sound of the speech, which is not needed
    return folder / entry.name


def find(name: str | Corpus, folder: str | Path) -> Path | None:
    """The path of a corpus in the folder, or None where there is none; DataError where it is damaged."""
    entry, folder = _entry(name), Path(folder)
    path, tree = folder / entry.file, folder / entry.name
    with _kept(entry, folder):
        if entry.archive:
            if tree.is_dir() and _recorded(tree) != _tree_digest(tree):
                raise DataError(f"{tree} is not as it was unpacked. Remove it and fetch {entry.name} again.")
            return tree if tree.is_dir() else None
        if path.exists():
            _verify(path, entry, path)
            return path
        return None


def by_hand(name: str | Corpus, folder: str | Path) -> str:
    """How to get a corpus without this program, in one sentence."""
    entry = _entry(name)
    checksum = f", sha256 {entry.sha256}" if entry.sha256 else ""
    return f"To get it by hand, save {entry.address} as {Path(folder) / entry.file} ({entry.size:,} bytes{checksum})."


def _entry(name: str | Corpus) -> Corpus:
    entry = corpora[name] if isinstance(name, str) else name
    if entry.built_in:
        raise DataError(f"{entry.name} is made by lmlab itself; there is nothing to fetch.")
    return entry


def _download(entry: Corpus, part: Path, opener: OpenerDirector, progress: Progress | None, timeout: float) -> None:
    """Fill the part file up to the size that is expected, going on as long as every other attempt brings something."""
    reason, idle = "", 0
    for _ in range(ATTEMPTS):
        have = _size(part)
        # Without a checksum nobody could tell that two pieces come from two versions of a file.
        if have > entry.size or (have and not entry.sha256):
            part.unlink()
            have = 0
        if have == entry.size:
            return
        try:
            _continue(entry, part, have, opener, progress, timeout)
            return
        except HTTPError as error:
            with error:
                reason = f"the server answers {error.code} {_reason(error)}"
            if error.code == 416:  # the server has less than we have: begin anew
                part.unlink(missing_ok=True)
            elif error.code < 500:
                break
        except Interrupted as error:
            reason = str(error)
        idle = 0 if entry.sha256 and _size(part) > have else idle + 1
        if idle == 2:
            break
    have = _size(part)
    kept = f" {have:,} of {entry.size:,} bytes are kept in {part}; the same command goes on from there." if have else ""
    raise DataError(f"{entry.name} could not be downloaded: {reason}.{kept} {by_hand(entry, part.parent)}")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _continue(
    entry: Corpus, part: Path, have: int, opener: OpenerDirector, progress: Progress | None, timeout: float
) -> None:
    """One request, from the first byte that is missing."""
    request = Request(entry.address, headers={"User-Agent": "lmlab", **({"Range": f"bytes={have}-"} if have else {})})
    with _response(opener, request, timeout) as response:
        if have and (response.status != 206 or _start(response.headers) != have):
            have = 0  # the server does not know ranges and sends everything
        length = response.headers.get("Content-Length")
        if length is not None and length.isdecimal() and have + int(length) != entry.size:
            problem = f"{entry.address} has {have + int(length):,} bytes where {entry.size:,} are expected"
            raise DataError(f"{entry.name} has changed: {problem}. {by_hand(entry, part.parent)}")
        with open(part, "ab" if have else "wb") as file:
            for chunk in _chunks(response):
                have += len(chunk)
                if have > entry.size:
                    break
                file.write(chunk)
                if progress is not None:
                    progress(have, entry.size)
            file.flush()
            os.fsync(file.fileno())
    if have > entry.size:
        part.unlink()
        raise DataError(f"{entry.name} at {entry.address} has more than the {entry.size:,} bytes that are expected.")
    if have < entry.size:
        raise Interrupted(f"the connection ended after {have:,} of {entry.size:,} bytes")


@contextmanager
def _response(opener: OpenerDirector, request: Request, timeout: float) -> Iterator[Any]:
    try:
        response = opener.open(request, timeout=timeout)
    except HTTPError:
        raise
    except (OSError, HTTPException, ValueError) as error:  # ValueError: a redirection to no proper address
        raise Interrupted(f"{request.full_url} cannot be reached ({_reason(error)})") from None
    with response:
        yield response


def _chunks(response: Any) -> Iterator[bytes]:
    try:
        while chunk := response.read1(CHUNK):  # what has come, so that nothing of it is lost when no more does
            yield chunk
    except (OSError, HTTPException) as error:
        raise Interrupted(f"the connection was lost ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    """In one line, also where a server chose the words."""
    return " ".join(str(getattr(error, "reason", "") or error or type(error).__name__).split())[:200]


def _start(headers: HTTPMessage) -> int:
    """The first byte of `Content-Range: bytes 100-199/200`; −1 where there is none."""
    first = headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdecimal() else -1


def _opener(loopback: bool) -> OpenerDirector:
    class Redirects(HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> Request | None:
            _check_address(newurl, loopback)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    return build_opener(Redirects, ProxyHandler({})) if loopback else build_opener(Redirects)


def _check_address(address: str, loopback: bool) -> None:
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if loopback and parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost"):
        return
    raise DataError(f"only https addresses are fetched; got {address!r}.")


def _verify(file: Path, entry: Corpus, path: Path) -> None:
    """DataError unless the file is what the catalogue says. A bad download is removed, so that the next begins anew."""
    size, expected, problem = file.stat().st_size, entry.sha256 or _recorded(path), ""
    if size != entry.size:
        problem = f"it has {size:,} bytes where {entry.size:,} are expected"
    elif (digest := _digest(file)) and not expected:
        _record(path, digest)
    elif digest != expected:
        problem = f"its sha256 is {digest} where {expected} is expected"
    if not problem:
        return
    if file == path:
        raise DataError(f"{file} is not {entry.title}: {problem}. Remove or replace it. {by_hand(entry, path.parent)}")
    file.unlink()
    raise DataError(f"the download {file} is damaged and was removed: {problem}. Run the same command again.")


def _unpack(archive: Path, tree: Path) -> None:
    """Only the transcripts, as plain files below the tree; an archive that tries anything else is refused."""
    part = tree.with_name(tree.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    left = LARGEST_FILE
    try:
        with tarfile.open(archive, "r|gz") as members:
            for member in members:
                if not member.name.endswith(".trans.txt"):
                    continue
                if not member.isreg() or not _stays_below(member.name):
                    raise DataError(f"{archive} holds {member.name!r}, which is no plain file below it. Do not use it.")
                left -= member.size
                content = members.extractfile(member)
                if left < 0 or content is None:
                    raise DataError(f"{archive} holds more than {LARGEST_FILE:,} bytes of transcripts. Do not use it.")
                target = part / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
        if left == LARGEST_FILE:
            raise DataError(f"{archive} has no *.trans.txt in it.")
        _record(tree, _tree_digest(part))
        os.replace(part, tree)
        _sync(tree.parent)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{archive} cannot be unpacked: {error}. Remove it and fetch it again.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _stays_below(name: str) -> bool:
    """Whether a name in an archive is a path below the place it is unpacked to, on every system."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and not {"\\", ":", "\0"} & set(name)


@contextmanager
def _kept(entry: Corpus, folder: Path) -> Iterator[None]:
    """Says in one line that the folder or the disk is at fault."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{entry.name} cannot be kept in {folder}: {error.strerror or error}.") from None


@contextmanager
def _alone(folder: Path, entry: Corpus) -> Iterator[None]:
    """One process at a time writes a corpus; the lock goes with the process, however it ends."""
    with open(folder / f".{entry.name}.lock", "wb") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(
                    f"another process is fetching {entry.name} into {folder}. Wait until it is done."
                ) from None
        yield


def _digest(file: Path) -> str:
    with open(file, "rb") as content:
        return _sha256(iter(lambda: content.read(CHUNK), b""))


def _tree_digest(tree: Path) -> str:
    """Over the names and contents of all transcripts."""
    files = sorted((file.relative_to(tree).as_posix(), file) for file in tree.rglob("*.trans.txt"))
    return _sha256(f"{name}\n{_digest(file)}\n".encode() for name, file in files)


def _sha256(pieces: Iterator[bytes]) -> str:
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _record(path: Path, digest: str) -> None:
    """In the form of the `sha256sum` command."""
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n", "utf-8")


def _recorded(path: Path) -> str:
    try:
        return path.with_name(path.name + ".sha256").read_text("utf-8").split()[0]
    except (FileNotFoundError, IndexError, UnicodeDecodeError):
        return ""


def _sync(folder: Path) -> None:
    """Make a rename last through a crash, where the system can do that for a folder."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
