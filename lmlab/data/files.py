"""Users' files as text, utterances or fixtures. What cannot be used is refused in one line, without being read whole.

    read_text         plain text, UTF-8
    read_rows         one text per row: a column of .csv, .tsv, .jsonl or .parquet, or the lines of a .txt
    read_librispeech  the *.trans.txt of a LibriSpeech tree
    read_utterances   .npy, .npz or a folder of .npy: whole numbers or symbols
    read_fixtures     prefixes and what follows them (document 003)

Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import IO, Any, Final

import numpy as np

from lmlab.core.errors import DataError, MissingExtra

LARGEST_FILE: Final = 512 * 2**20
"""Bytes of a file, or of all files of a folder, unless the caller says otherwise."""
LONGEST_LINE: Final = 64 * 2**20
"""Bytes of a line and characters of a field."""
TABLES: Final = (".csv", ".tsv", ".jsonl", ".parquet")
ARRAYS: Final = (".npy", ".npz")
_csv_limit: Final = Lock()  # the csv module has one limit for the whole process


@dataclass(frozen=True, eq=False)
class Fixtures:
    """prefixes (N, T) and following (N, K) int64; K is 0 where what follows is not given."""

    prefixes: np.ndarray
    following: np.ndarray

    def __repr__(self) -> str:
        return (
            f"Fixtures({len(self.prefixes)} prefixes of {self.prefixes.shape[1]}, {self.following.shape[1]} following)"
        )


def read_text(path: str | Path, limit: int = LARGEST_FILE) -> str:
    """The text of a UTF-8 file, a byte order mark dropped and line ends made `\\n`."""
    if Path(path).suffix.lower() in (*TABLES, *ARRAYS):
        raise DataError(f"{_name(path)} holds a table or arrays, not plain text. Give a .txt file.")
    text = "".join(line for _, line in _lines(path, limit)).replace("\r\n", "\n").replace("\r", "\n")
    _check_symbols([text], path)
    return text


def read_rows(path: str | Path, column: str = "", limit: int = LARGEST_FILE) -> list[str]:
    """One text per row, as it stands. The column may be left out where there is only one.

    .tsv has no quoting, so that a quotation mark is a symbol like any other; .csv has. Lines of .txt are rows,
    empty ones left out.
    """
    readers = {".csv": _csv_rows, ".tsv": _csv_rows, ".jsonl": _json_rows, ".parquet": _parquet_rows}
    suffix = Path(path).suffix.lower()
    if suffix in ("", ".txt"):
        rows = [text for _, line in _lines(path, limit) if (text := line.rstrip("\r\n"))]
    elif suffix in readers:
        rows = readers[suffix](path, column, limit)
    else:
        raise DataError(f"{_name(path)} is of a kind that cannot be read as rows. Known: .txt, {', '.join(TABLES)}.")
    if not rows:
        raise DataError(f"{_name(path)} has no rows. Give a file with at least one row below the names.")
    _check_symbols(rows, path)
    return rows


def read_librispeech(folder: str | Path, limit: int = LARGEST_FILE) -> list[str]:
    """The transcripts of all `*.trans.txt` below a folder, in order of their paths; a line is `ID TEXT`."""
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{_name(folder)} is not a folder. Give the folder that LibriSpeech was unpacked to.")
    files = sorted(root.rglob("*.trans.txt"), key=lambda file: file.relative_to(root).as_posix())
    if not files:
        raise DataError(f"{_name(folder)} has no *.trans.txt in it. Give the folder that LibriSpeech was unpacked to.")
    _check_total(files, folder, limit)
    rows = []
    for file in files:
        for number, line in _lines(file, limit):
            name, _, text = line.strip().partition(" ")
            if name and not text.strip():
                raise DataError(f"{_name(file)}, line {number}: must be an id and a text; got {_short(line.strip())}.")
            if name:
                rows.append(text.strip())
    _check_symbols(rows, folder)
    return rows


def read_utterances(path: str | Path, vocabulary: Sequence[str] = (), limit: int = LARGEST_FILE) -> list[str]:
    """Utterances kept as arrays, as text; marks like `<sos>` and `<pad>` are left out.

    An array holds symbols (`['<sos>', 'H', 'I', '<eos>']`) or their ids in the vocabulary. One axis: one utterance, or
    whole utterances as strings. Two axes (N, S): an utterance a row, filled up with `<pad>`, '' or a negative id.
    A .npz has one such array, or `symbols` (all of them, one after another) and `lengths` (N,), which pads nothing.
    A folder has one utterance in each .npy. Arrays of Python objects would be unpickled, so they are refused.
    """
    source = Path(path)
    if source.is_dir():
        files = sorted(source.glob("*.npy"))
        if not files:
            raise DataError(f"{_name(path)} has no .npy files in it. Give a file, or a folder of .npy files.")
        _check_total(files, path, limit)
        rows = [row for file in files for row in _utterances(_arrays(file, limit), vocabulary, file)]
    else:
        rows = _utterances(_arrays(path, limit), vocabulary, path)
    _check_symbols(rows, path)
    return rows


def read_fixtures(path: str | Path, vocabulary: Sequence[str] = ()) -> Fixtures:
    """Prefixes to be continued: a .npz with `inp` (N, T) and, where known, `out` (N, K), or `prefixes` and `following`.

    Symbols instead of ids need the vocabulary; with a vocabulary, ids are checked to be in it.
    """
    arrays = _arrays(path, LARGEST_FILE)
    prefixes = next((arrays[name] for name in ("prefixes", "inp", "") if name in arrays), None)
    following = next((arrays[name] for name in ("following", "out") if name in arrays), None)
    if prefixes is None and len(arrays) == 1:
        prefixes = next(iter(arrays.values()))
    if prefixes is None:
        raise DataError(f"{_name(path)} must have an array 'prefixes' or 'inp'; it has: {_listed(arrays)}.")
    first = _ids(prefixes, "prefixes", vocabulary, path)
    second = (
        np.zeros((len(first), 0), np.int64) if following is None else _ids(following, "following", vocabulary, path)
    )
    if len(first) != len(second):
        raise DataError(
            f"{_name(path)} must have as many prefixes as continuations; got shapes {first.shape} and {second.shape}."
        )
    return Fixtures(first, second)


def drop_speakers(text: str) -> str:
    """Document 002's cleaning: without empty lines, the line after each (the speaker) and the very first line."""
    kept, speaker = [], True
    for line in text.split("\n"):
        if not line:
            speaker = True
        elif speaker:
            speaker = False
        else:
            kept.append(line)
    return "\n".join(kept)


def _check_total(files: Iterable[Path], folder: str | Path, limit: int) -> None:
    total = sum(file.stat().st_size for file in files if file.exists())
    if total > limit:
        raise DataError(f"{_name(folder)} holds {total:,} bytes; the limit is {limit:,}. Give a part of it.")


@contextmanager
def _opened(path: str | Path, limit: int) -> Iterator[tuple[IO[bytes], int]]:
    """The file and its size; everything that can be wrong with a path is said here."""
    try:
        info = os.stat(path)
        if stat.S_ISDIR(info.st_mode):
            raise DataError(f"{_name(path)} is a folder, not a file. Name a file in it.")
        if not stat.S_ISREG(info.st_mode):
            raise DataError(f"{_name(path)} is not a regular file. Copy what it gives into one.")
        if info.st_size > limit:
            raise DataError(f"{_name(path)} has {info.st_size:,} bytes; the limit is {limit:,}. Give a part of it.")
        if info.st_size == 0:
            raise DataError(f"{_name(path)} is empty. Give a file with text in it.")
        file = open(path, "rb")  # noqa: SIM115  (closed below)
    except FileNotFoundError:
        raise DataError(f"there is no file {_name(path)}. Check the path.") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise _unreadable(path, error) from None
    with file:
        try:
            yield file, info.st_size
        except OSError as error:
            raise _unreadable(path, error) from None


def _unreadable(path: str | Path, error: Exception) -> DataError:
    reason = getattr(error, "strerror", None) or error
    return DataError(f"{_name(path)} cannot be read: {reason}. Check the path and its permissions.")


def _lines(path: str | Path, limit: int) -> Iterator[tuple[int, str]]:
    """Number and text of each line, with its end."""
    with _opened(path, limit) as (file, _):
        offset, number = 0, 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            where = f"{_name(path)}, line {number}"
            if len(line) > LONGEST_LINE:
                raise DataError(f"{where} is longer than {LONGEST_LINE:,} bytes. Break it into lines.")
            if offset + len(line) > limit:  # it grew while it was read
                raise DataError(f"{_name(path)} has more than {limit:,} bytes. Give a part of it.")
            if (nul := line.find(b"\0")) >= 0:
                raise DataError(f"{where} has a null byte at byte {offset + nul}: this is not text. Give a text file.")
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                position = offset + error.start
                raise DataError(
                    f"{where} is not UTF-8: byte 0x{line[error.start]:02x} at byte {position}. Save the file as UTF-8."
                ) from None
            offset += len(line)
            if text := text.removeprefix("\ufeff") if number == 1 else text:
                yield number, text


def _csv_rows(path: str | Path, column: str, limit: int) -> list[str]:
    tabs = Path(path).suffix.lower() == ".tsv"
    style: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"strict": True}
    rows: list[str] = []
    with _csv_limit:
        before = csv.field_size_limit(LONGEST_LINE)
        reader = csv.reader((line for _, line in _lines(path, limit)), **style)
        try:
            names = next(reader, [])
            index = names.index(_column(names, column, path))
            for row in reader:
                if row and len(row) != len(names):
                    raise DataError(
                        f"{_name(path)}, line {reader.line_num}: must have {len(names)} fields like the first line; "
                        f"got {len(row)}. Put a field with a comma in it into quotation marks."
                    )
                if row:
                    rows.append(row[index])
        except csv.Error as error:
            raise DataError(f"{_name(path)}, line {reader.line_num}: is not proper CSV ({error}).") from None
        finally:
            csv.field_size_limit(before)
    return rows


def _json_rows(path: str | Path, column: str, limit: int) -> list[str]:
    rows = []
    for number, line in _lines(path, limit):
        if not line.strip():
            continue
        where = f"{_name(path)}, line {number}"
        try:
            record = json.loads(line)
        except RecursionError:
            raise DataError(f"{where} is nested too deeply. Give one flat object per line.") from None
        except ValueError as error:
            raise DataError(f"{where} is not JSON: {error}. Give one object per line.") from None
        if not isinstance(record, dict):
            raise DataError(f"{where} must be an object like {{'text': …}}; got {_short(line.strip())}.")
        rows.append(_row(record[_column(record, column, where)], where))
    return rows


def _parquet_rows(path: str | Path, column: str, limit: int) -> list[str]:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("pyarrow", "parquet", f"reading {_name(path)}") from None
    rows, size = [], 0
    with _opened(path, limit) as (file, _):
        try:
            table = parquet.ParquetFile(file)
            name = _column(table.schema_arrow.names, column, path)
            for batch in table.iter_batches(1024, columns=[name]):
                for value in batch.column(0).to_pylist():
                    rows.append(_row(value, f"{_name(path)}, row {len(rows) + 1}"))
                    size += len(rows[-1])
                    if size > limit:  # a few bytes of a compressed file can stand for very many
                        raise DataError(f"{_name(path)} holds more than {limit:,} characters. Give a part of it.")
        except pyarrow.ArrowException as error:
            raise DataError(f"{_name(path)} is not proper Parquet: {str(error).splitlines()[0]}.") from None
    return rows


def _column(names: Iterable[str], column: str, where: str | Path) -> str:
    known = list(names)
    if not column and len(known) == 1:
        return known[0]
    if known.count(column) == 1:
        return column
    problem = f"has no column {column!r}" if column not in known else f"has more than one column {column!r}"
    if not column:
        problem = "needs the name of a column"
    raise DataError(f"{_name(where)} {problem}. It has: {_listed(known)}.")


def _row(value: object, where: str) -> str:
    """A text that could stand in a text file."""
    if not isinstance(value, str):
        raise DataError(f"{where} must hold text; got {_short(value)}.")
    halves = not value.isascii() and any("\ud800" <= symbol <= "\udfff" for symbol in value)
    if len(value) > LONGEST_LINE or "\0" in value or halves:
        raise DataError(f"{where} holds no proper text: too long, a null character or half a character.")
    return value


def _arrays(path: str | Path, limit: int) -> dict[str, np.ndarray]:
    """The arrays of a .npz by name; that of a .npy has the name ''."""
    suffix = Path(path).suffix.lower()
    if suffix not in ARRAYS:
        raise DataError(f"{_name(path)} must be a .npy or .npz file.")
    with _opened(path, limit) as (file, size):
        if suffix == ".npy":
            return {"": _array(file, size, _name(path))}
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                if sum(member.file_size for member in members) > limit:
                    raise DataError(f"{_name(path)} holds more than {limit:,} bytes. Give a part of it.")
                arrays = {}
                for member in members:
                    name = member.filename.removesuffix(".npy")
                    data = io.BytesIO(archive.read(member))
                    arrays[name] = _array(data, member.file_size, f"{_name(path)}, array {name!r}")
                return arrays
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{_name(path)} is not a proper .npz file: {error}.") from None


def _array(file: IO[bytes], size: int, where: str) -> np.ndarray:
    """One array. Its header is believed only as far as there are bytes: no room is made for what is not there."""
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        shape, by_columns, dtype = headers[np.lib.format.read_magic(file)](file)
    except Exception:  # numpy raises many kinds for a damaged header
        raise DataError(f"{where} is not a proper .npy file. Write it with numpy.save.") from None
    if dtype.hasobject:
        raise DataError(
            f"{where} holds Python objects, which are never unpickled. Save a matrix filled up with the id of <pad>, "
            "or a .npz with 'symbols' (all in a row) and 'lengths'."
        )
    if dtype.kind not in "iuU" or dtype.itemsize == 0:
        raise DataError(f"{where} must hold whole numbers or symbols; got {dtype}.")
    wanted = math.prod(shape) * dtype.itemsize
    if wanted == 0 or min(shape, default=1) < 0 or len(shape) not in (1, 2):
        raise DataError(f"{where} must have one or two axes, none of them empty; got shape {shape}.")
    if wanted > size - file.tell():
        raise DataError(f"{where} is cut short: its {shape} need {wanted:,} bytes, {size - file.tell():,} are there.")
    return np.frombuffer(file.read(wanted), dtype).reshape(shape, order="F" if by_columns else "C")


def _utterances(arrays: dict[str, np.ndarray], vocabulary: Sequence[str], path: str | Path) -> list[str]:
    if set(arrays) == {"symbols", "lengths"}:
        symbols, lengths = arrays["symbols"], arrays["lengths"]
        if lengths.dtype.kind not in "iu" or symbols.ndim + lengths.ndim != 2 or lengths.min() < 0:
            raise DataError(f"{_name(path)} must have 'symbols' with one axis and whole numbers in 'lengths'.")
        if sum(lengths.tolist()) != len(symbols):
            total = sum(lengths.tolist())
            raise DataError(f"{_name(path)}: 'lengths' add up to {total:,}, but there are {len(symbols):,} 'symbols'.")
        parts = np.split(symbols, np.cumsum(lengths.astype(np.int64))[:-1])
    elif len(arrays) == 1:
        (array,) = arrays.values()
        parts = [array] if array.ndim == 1 else list(array)
    else:
        raise DataError(f"{_name(path)} must have one array, or 'symbols' and 'lengths'; it has: {_listed(arrays)}.")
    if len(parts) == 1 and parts[0].dtype.kind == "U" and any(len(s) > 1 and not _mark(s) for s in parts[0].tolist()):
        return parts[0].tolist()
    return [_text(part, vocabulary, f"{_name(path)}, utterance {n}") for n, part in enumerate(parts, start=1)]


def _text(part: np.ndarray, vocabulary: Sequence[str], where: str) -> str:
    symbols = part.tolist() if part.dtype.kind == "U" else _symbols(part, vocabulary, where)
    return "".join(symbol for symbol in symbols if not _mark(symbol))


def _symbols(part: np.ndarray, vocabulary: Sequence[str], where: str) -> list[str]:
    if not vocabulary:
        raise DataError(f"{where} holds ids; a vocabulary is needed to read them.")
    ids = part[part >= 0]
    if ids.size and ids.max() >= len(vocabulary):
        raise DataError(f"{where}: id {ids.max()} is not in the vocabulary of {len(vocabulary)} symbols.")
    return [vocabulary[index] for index in map(int, ids)]


def _mark(symbol: str) -> bool:
    return len(symbol) > 2 and symbol[0] == "<" and symbol[-1] == ">"


def _ids(array: np.ndarray, name: str, vocabulary: Sequence[str], path: str | Path) -> np.ndarray:
    """(N, T) int64, all of them in the vocabulary where there is one."""
    where = f"{_name(path)}, {name}"
    if array.ndim != 2:
        raise DataError(f"{where} must have two axes, one row for each; got shape {array.shape}.")
    if array.dtype.kind == "U":
        known = {symbol: index for index, symbol in enumerate(vocabulary)}
        strange = [symbol for symbol in dict.fromkeys(array.ravel().tolist()) if symbol not in known]
        if strange:
            raise DataError(f"{where} has symbols outside the vocabulary: {_listed(strange)}.")
        return np.array([[known[symbol] for symbol in row] for row in array.tolist()], np.int64)
    largest = len(vocabulary) or 2**31
    if array.min() < 0 or array.max() >= largest:
        wrong = array.min() if array.min() < 0 else array.max()
        raise DataError(f"{where} must hold ids from 0 to {largest - 1}; got {wrong}.")
    return array.astype(np.int64)


def _check_symbols(texts: Iterable[str], path: str | Path) -> None:
    symbols: set[str] = set()
    for text in texts:
        symbols.update(text)
        if len(symbols) > 1:
            return
    found = f"only one symbol, {symbols.pop()!r}" if symbols else "no symbols"
    raise DataError(f"{_name(path)} has {found}: there is nothing to learn. Give text with at least two symbols.")


def _listed(names: Iterable[str]) -> str:
    """At most ten names, in one line."""
    known = [_short(name) for name in names]
    return ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "") if known else "nothing"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _name(path: str | Path) -> str:
    """A path as it is typed; a newline in one must not break the message into two."""
    return str(path) if str(path).isprintable() else repr(str(path))
