"""Users' files: what can be read, and the one line said of what cannot."""

import csv
import io
import json
import os
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmlab.core.errors import DataError, MissingExtra
from lmlab.data import files
from lmlab.data.files import (
    Fixtures,
    drop_speakers,
    read_fixtures,
    read_librispeech,
    read_rows,
    read_text,
    read_utterances,
)

VOCABULARY = ("<sos>", "<eos>", "<pad>", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "'", " ")


def refusal(read, *arguments) -> str:
    """The message of a refusal: one line, and never a traceback's."""
    with pytest.raises(DataError) as caught:
        read(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- plain text


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=2).filter(lambda t: len(set(t)) > 1))
def test_text_comes_back_as_it_was(tmp_path_factory, text):
    path = written(tmp_path_factory.mktemp("text") / "a.txt", text)
    assert read_text(path) == text.removeprefix("\ufeff")


@pytest.mark.parametrize("name", ["a.txt", "a", "a.md", "A.TXT"])
def test_any_suffix_of_plain_text_will_do(tmp_path, name):
    assert read_text(written(tmp_path / name, "ab\nc")) == "ab\nc"


def test_byte_order_mark_and_line_ends(tmp_path):
    path = written(tmp_path / "a.txt", b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert read_text(str(path)) == "one\ntwo\nthree\n"


def test_the_place_of_a_bad_byte_is_named(tmp_path):
    path = written(tmp_path / "a.txt", "first\nsécond\n".encode() + b"ab\xffcd\n")
    message = refusal(read_text, path)
    assert "line 3" in message
    assert "0xff at byte 16" in message
    assert "UTF-8" in message
    assert "line 1" in refusal(read_text, written(tmp_path / "b.txt", "wide".encode("utf-16")))


def test_a_null_byte_is_refused(tmp_path):
    message = refusal(read_text, written(tmp_path / "a.txt", b"ab\ncd\0e"))
    assert "line 2" in message
    assert "null byte at byte 5" in message


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"", "is empty"), (b"a", "only one symbol, 'a'"), (b"\n\n", "only one symbol"), (b"\xef\xbb\xbf", "no symbols")],
)
def test_text_that_teaches_nothing(tmp_path, content, part):
    assert part in refusal(read_text, written(tmp_path / "a.txt", content))


def test_paths_that_are_no_files(tmp_path):
    assert "is a folder" in refusal(read_text, tmp_path)
    assert "there is no file" in refusal(read_text, tmp_path / "none.txt")
    assert "cannot be read" in refusal(read_text, "a\0b")
    assert "cannot be read" in refusal(read_text, "a" * 10_000)
    assert r"'two\nlines'" in refusal(read_text, "two\nlines")
    assert "not a regular file" in refusal(read_text, "/dev/zero")
    assert "table or arrays" in refusal(read_text, written(tmp_path / "a.csv", "text\nab\n"))


def test_a_file_that_may_not_be_read(tmp_path):
    path = written(tmp_path / "a.txt", "secret")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # the superuser may read everything
    try:
        assert "Permission denied" in refusal(read_text, path)
    finally:
        os.seteuid(user)


def test_a_file_over_the_limit_is_not_read(tmp_path):
    path = tmp_path / "a.txt"
    with open(path, "wb") as file:
        file.truncate(10 * 2**30)  # ten gigabytes that take no room
    assert "10,737,418,240 bytes; the limit is 536,870,912" in refusal(read_text, path)
    assert "the limit is 3" in refusal(read_text, written(tmp_path / "b.txt", "abcd"), 3)


def test_a_very_long_line_is_refused_before_it_is_read_whole(tmp_path):
    path = tmp_path / "a.jsonl"
    with open(path, "wb") as file:
        file.truncate(10 * 2**30)
    code = (
        "import resource, sys; from lmlab.data.files import read_rows\n"
        "from lmlab.core.errors import DataError\n"
        "try: read_rows(sys.argv[1], 'text', 2**40)\n"
        "except DataError as error: print(error, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    message, _, megabytes = done.stdout.rpartition(" ")
    assert "line 1 is longer than 67,108,864 bytes" in message
    assert int(megabytes) < 1500


# --- rows


def test_a_column_of_a_csv(tmp_path):
    rows = ["plain", 'with "quotes", and commas', "two\nlines", "", "ünïcode"]
    with open(tmp_path / "a.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "transcript"])
        writer.writerows(enumerate(rows))
    assert read_rows(tmp_path / "a.csv", "transcript") == rows
    assert read_rows(tmp_path / "a.csv", "id") == list("01234")


def test_the_only_column_needs_no_name(tmp_path):
    assert read_rows(written(tmp_path / "a.csv", "text\nab\ncd\n")) == ["ab", "cd"]
    assert read_rows(written(tmp_path / "a.jsonl", '{"text": "ab"}\n')) == ["ab"]


def test_quotation_marks_in_tsv_are_symbols(tmp_path):
    path = written(tmp_path / "a.tsv", 'id\ttext\r\n1\t"Oh," she said\r\n2\tan "open one\r\n')
    assert read_rows(path, "text") == ['"Oh," she said', 'an "open one']


@pytest.mark.parametrize(
    ("content", "column", "parts"),
    [
        ("a,b\n1,2\n", "text", ["no column 'text'", "'a', 'b'"]),
        ("a,b\n1,2\n", "", ["name of a column", "'a', 'b'"]),
        ("text,text\n1,2\n", "text", ["more than one column"]),
        ("a,b\n1,2\n3\n", "a", ["line 3", "2 fields", "got 1"]),
        ('a,b\n1,"2\n3,4\n', "a", ["not proper CSV"]),
        ("a,b\n", "a", ["no rows"]),
        ("a\nxx\nx\n", "a", ["only one symbol"]),
        (b"a\nxy\n\xff\n", "a", ["line 3", "0xff at byte 5"]),
    ],
)
def test_csv_that_cannot_be_used(tmp_path, content, column, parts):
    message = refusal(read_rows, written(tmp_path / "a.csv", content), column)
    assert all(part in message for part in parts), message


def test_long_fields_are_read_and_the_modules_limit_is_left_as_it_was(tmp_path):
    before = csv.field_size_limit()
    text = "ab" * before
    assert read_rows(written(tmp_path / "a.csv", f"text,n\n{text},1\n"), "text") == [text]
    assert csv.field_size_limit() == before


def test_a_field_over_many_lines_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 100)
    path = written(tmp_path / "a.csv", 'text\n"' + "ten symbol\n" * 20 + '"\n')
    assert "field" in refusal(read_rows, path, "text")


def test_json_lines(tmp_path):
    lines = [{"text": "ab", "n": 1}, {"n": 2, "text": "c\n\u2028d"}]
    content = "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    assert read_rows(written(tmp_path / "a.jsonl", content), "text") == ["ab", "c\n\u2028d"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("{'text': 1}", ["is not JSON"]),
        ('{"text": "a"', ["is not JSON"]),
        ("[" * 200_000, ["nested too deeply"]),
        ('{"text": ' + "[" * 200_000 + "]" * 200_000 + "}", ["nested too deeply"]),
        ('{"text": ' + "9" * 5000 + "}", []),
        ("[1]", ["must be an object"]),
        ('{"a": 1, "b": 2}', ["no column 'text'", "'a', 'b'"]),
        ('{"text": null}', ["must hold text", "None"]),
        ('{"text": 5}', ["must hold text", "5"]),
        ('{"text": "\\ud800"}', ["no proper text"]),
        ('{"text": "a\\u0000"}', ["no proper text"]),
    ],
)
def test_json_lines_that_cannot_be_used(tmp_path, line, parts):
    message = refusal(read_rows, written(tmp_path / "a.jsonl", f'{{"text": "ab"}}\n{line}\n'), "text")
    assert "line 2" in message
    assert all(part in message for part in parts), message


def test_lines_of_a_text_are_rows(tmp_path):
    assert read_rows(written(tmp_path / "a.txt", "HELLO THERE\r\n\r\n GOOD DAY\n")) == ["HELLO THERE", " GOOD DAY"]
    assert "cannot be read as rows" in refusal(read_rows, written(tmp_path / "a.xlsx", "x"), "text")


def test_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"text": ["ab", "", "ünï"] * 1000, "n": [1, 2, 3] * 1000, "gaps": ["a", None, "b"] * 1000})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read_rows(tmp_path / "a.parquet", "text") == ["ab", "", "ünï"] * 1000
    assert "'text', 'n', 'gaps'" in refusal(read_rows, tmp_path / "a.parquet", "story")
    assert "row 1 must hold text" in refusal(read_rows, tmp_path / "a.parquet", "n")
    assert "row 2 must hold text" in refusal(read_rows, tmp_path / "a.parquet", "gaps")
    assert "not proper Parquet" in refusal(read_rows, written(tmp_path / "b.parquet", "no table"), "text")
    many = pyarrow.table({"text": ["a" * 100_000] * 200})  # a few bytes that stand for twenty million
    parquet.write_table(many, tmp_path / "c.parquet")
    assert (tmp_path / "c.parquet").stat().st_size < 2**20
    assert "holds more than" in refusal(read_rows, tmp_path / "c.parquet", "text", 2**20)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"needs pyarrow. Install it with: pip install 'lmlab\[parquet\]'"):
        read_rows(written(tmp_path / "a.parquet", "PAR1"), "text")


# --- LibriSpeech


def test_a_librispeech_tree_in_order_of_its_paths(tmp_path):
    for name, lines in {
        "dev-clean/84/121123/84-121123.trans.txt": "84-121123-0000 GO DO YOU HEAR\n84-121123-0001 BUT IN LESS\n",
        "dev-clean/174/50561/174-50561.trans.txt": "174-50561-0000 FORGOTTEN TOO\n\n",
        "dev-clean/84/121123/84-121123-0000.flac": "sound",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        written(tmp_path / name, lines)
    assert read_librispeech(tmp_path) == ["FORGOTTEN TOO", "GO DO YOU HEAR", "BUT IN LESS"]
    assert "the limit is 10" in refusal(read_librispeech, tmp_path, 10)
    written(tmp_path / "bad.trans.txt", "1-2-3 FINE\n1-2-4\n")
    assert "line 2: must be an id and a text" in refusal(read_librispeech, tmp_path)


def test_folders_that_are_no_librispeech(tmp_path):
    assert "no *.trans.txt" in refusal(read_librispeech, tmp_path)
    assert "is not a folder" in refusal(read_librispeech, tmp_path / "none")


# --- arrays


def test_utterances_of_symbols_and_of_ids_say_the_same(tmp_path):
    spoken = ["HI THERE", "IT'S ME"]
    longest = max(map(len, spoken)) + 2
    symbols = [["<sos>", *text, "<eos>"] + ["<pad>"] * (longest - len(text) - 2) for text in spoken]
    ids = np.array([[VOCABULARY.index(symbol) for symbol in row] for row in symbols])
    np.save(tmp_path / "symbols.npy", np.array(symbols))
    np.save(tmp_path / "ids.npy", ids.astype(">i2"))
    np.save(tmp_path / "columns.npy", np.asfortranarray(ids))
    np.save(tmp_path / "negative.npy", np.where(ids == VOCABULARY.index("<pad>"), -1, ids))
    np.save(tmp_path / "whole.npy", np.array(spoken))
    np.savez(tmp_path / "one.npz", ids)
    lengths = [len(text) for text in spoken]
    np.savez_compressed(tmp_path / "ragged.npz", symbols=np.array(list("".join(spoken))), lengths=lengths)
    flat = np.array([VOCABULARY.index(symbol) for symbol in "".join(spoken)], np.uint8)
    np.savez(tmp_path / "ragged-ids.npz", symbols=flat, lengths=np.array(lengths))
    for name in (
        "symbols.npy",
        "ids.npy",
        "columns.npy",
        "negative.npy",
        "whole.npy",
        "one.npz",
        "ragged.npz",
        "ragged-ids.npz",
    ):
        assert read_utterances(tmp_path / name, VOCABULARY) == spoken, name


def test_a_folder_with_an_utterance_in_each_file(tmp_path):
    for number, text in enumerate(["FIRST", "SECOND", "A"]):
        np.save(tmp_path / f"{number:04d}.npy", np.array(["<sos>", *text, "<eos>"]))
    assert read_utterances(tmp_path) == ["FIRST", "SECOND", "A"]
    assert "the limit is 50" in refusal(read_utterances, tmp_path, (), 50)
    (tmp_path / "empty").mkdir()
    assert "no .npy files" in refusal(read_utterances, tmp_path / "empty")


def test_objects_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path(tmp_path / "sprung").touch, ())

    ragged = np.empty(2, object)
    ragged[:] = [Trap(), np.arange(3)]
    np.save(tmp_path / "a.npy", ragged, allow_pickle=True)
    np.savez(tmp_path / "a.npz", inp=ragged, allow_pickle=True)
    for read in (read_utterances, read_fixtures):
        for name in ("a.npy", "a.npz"):
            message = refusal(read, tmp_path / name)
            assert "never unpickled" in message
            assert "<pad>" in message
            assert "'lengths'" in message
    assert not (tmp_path / "sprung").exists()


def npy(shape: str, descr: str = "<i8", data: bytes = b"") -> bytes:
    """A .npy whose header says whatever it likes."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"not numpy", "not a proper .npy"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "not a proper .npy"),
        (b"\x93NUMPY\x09\x00\x10\x00", "not a proper .npy"),
        (npy("(((" * 3000), "not a proper .npy"),
        (npy("(2,)", "<q9"), "not a proper .npy"),
        (npy("(1000000, 1000000)"), "cut short"),
        (npy("(4,)", data=b"\0" * 31), "cut short"),
        (npy("(0,)"), "none of them empty"),
        (npy("(-4,)"), "none of them empty"),
        (npy("()", data=b"\0" * 8), "one or two axes"),
        (npy("(2, 1, 1)", data=b"\0" * 16), "one or two axes"),
        (npy("(1000000000000,)", "<U0"), "whole numbers or symbols"),
        (npy("(1,)", "<f8", b"\0" * 8), "whole numbers or symbols"),
        (npy("(1,)", "|b1", b"\0" * 8), "whole numbers or symbols"),
        (npy("(1,)", data=b"\x1f" + b"\0" * 7), "id 31 is not in the vocabulary of 31 symbols"),
        (npy("(1,)", "<u8", b"\xff" * 8), "is not in the vocabulary"),
        (npy("(2,)", data=b"\x03" + b"\0" * 7 + b"\x03" + b"\0" * 7), "only one symbol, 'A'"),
    ],
)
def test_arrays_that_cannot_be_used(tmp_path, content, part):
    message = refusal(read_utterances, written(tmp_path / "a.npy", content), VOCABULARY)
    assert part in message


@pytest.mark.parametrize(
    ("arrays", "part"),
    [
        ({"a": [1], "b": [2]}, "one array, or 'symbols' and 'lengths'; it has: 'a', 'b'"),
        ({"symbols": [3, 4], "lengths": [3]}, "'lengths' add up to 3, but there are 2 'symbols'"),
        ({"symbols": [3, 4], "lengths": [-1, 3]}, "whole numbers in 'lengths'"),
        ({"symbols": [[3, 4]], "lengths": [2]}, "with one axis"),
    ],
)
def test_npz_that_cannot_be_used(tmp_path, arrays, part):
    np.savez(tmp_path / "a.npz", **{name: np.array(values) for name, values in arrays.items()})
    assert part in refusal(read_utterances, tmp_path / "a.npz", VOCABULARY)


def test_npz_files_that_are_damaged_or_swell(tmp_path):
    assert "not a proper .npz" in refusal(read_fixtures, written(tmp_path / "a.npz", b"PK\x03\x04 no"))
    np.savez_compressed(tmp_path / "b.npz", inp=np.zeros((2000, 2000), np.int64))
    whole = (tmp_path / "b.npz").read_bytes()
    assert len(whole) < 2**20
    assert "holds more than 1,048,576 bytes" in refusal(read_utterances, tmp_path / "b.npz", VOCABULARY, 2**20)
    middle = bytearray(whole)
    middle[200:260] = b"?" * 60
    assert "not a proper .npz" in refusal(read_fixtures, written(tmp_path / "c.npz", bytes(middle)))
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        archive.writestr("inp.npy", b"text")
    assert "array 'inp' is not a proper .npy" in refusal(read_fixtures, tmp_path / "d.npz")
    assert "must be a .npy or .npz" in refusal(read_fixtures, written(tmp_path / "e.txt", "text"))
    assert "needed to read them" in refusal(read_utterances, written(tmp_path / "f.npy", npy("(1,)", data=bytes(8))))


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail_otherwise(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("a.npy", "a.npz", "a.csv", "a.jsonl", "a.txt"):
        read = read_utterances if name[2:4] == "np" else read_rows
        with suppress(DataError):
            read(written(folder / name, content), VOCABULARY if read is read_utterances else "text")


def test_fixtures_of_document_003(tmp_path):
    random = np.random.default_rng(0)
    prefixes, following = random.integers(0, 31, (128, 30)), random.integers(0, 31, (128, 20))
    np.savez(tmp_path / "prediction.npz", inp=prefixes, out=following)
    np.savez(tmp_path / "ours.npz", prefixes=np.array(VOCABULARY)[prefixes], following=np.array(VOCABULARY)[following])
    for name in ("prediction.npz", "ours.npz"):
        fixtures = read_fixtures(tmp_path / name, VOCABULARY)
        assert np.array_equal(fixtures.prefixes, prefixes)
        assert np.array_equal(fixtures.following, following)
        assert fixtures.prefixes.dtype == fixtures.following.dtype == np.int64
    assert repr(fixtures) == "Fixtures(128 prefixes of 30, 20 following)"


@pytest.mark.parametrize("suffix", ["npz", "npy"])
def test_prefixes_alone(tmp_path, suffix):
    prefixes = np.random.default_rng(0).integers(0, 31, (128, 40))
    (np.savez if suffix == "npz" else np.save)(tmp_path / f"generation_test.{suffix}", prefixes)
    fixtures = read_fixtures(tmp_path / f"generation_test.{suffix}")
    assert isinstance(fixtures, Fixtures)
    assert fixtures.prefixes.shape == (128, 40)
    assert fixtures.following.shape == (128, 0)


@pytest.mark.parametrize(
    ("arrays", "part"),
    [
        ({"inp": np.zeros(30, int)}, "prefixes must have two axes, one row for each; got shape (30,)"),
        ({"inp": np.zeros((2, 3), int), "out": np.zeros((3, 3), int)}, "got shapes (2, 3) and (3, 3)"),
        ({"inp": np.full((2, 3), 31)}, "ids from 0 to 30; got 31"),
        ({"inp": np.full((2, 3), -1)}, "ids from 0 to 30; got -1"),
        ({"inp": np.full((2, 3), "a")}, "symbols outside the vocabulary: 'a'"),
        ({"x": np.zeros((2, 3), int), "y": np.zeros((2, 3), int)}, "'prefixes' or 'inp'; it has: 'x', 'y'"),
    ],
)
def test_fixtures_that_do_not_fit(tmp_path, arrays, part):
    np.savez(tmp_path / "a.npz", **arrays)
    assert part in refusal(read_fixtures, tmp_path / "a.npz", VOCABULARY)


# --- cleaning


def test_speakers_are_dropped():
    play = "First Citizen:\nBefore we go on,\nhear me.\n\nAll:\nSpeak.\n\n\nFirst Citizen:\n\nLost:\n spaced \n"
    assert drop_speakers(play) == "Before we go on,\nhear me.\nSpeak.\n spaced "
    assert drop_speakers("") == ""
    assert drop_speakers("\n\nAll:\nSpeak") == "Speak"


@given(st.lists(st.sampled_from(["", "A:", "one", "two"])))
def test_speakers_as_document_002_drops_them(lines):
    kept, skip = [], True
    for line in io.StringIO("\n".join(lines)):
        line = line.strip("\n")
        if line == "" or skip:
            skip = line == ""
            continue
        kept.append(line)
    assert drop_speakers("\n".join(lines)) == "\n".join(kept)
