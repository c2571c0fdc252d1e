"""What the README tells a newcomer to type works, in the order it is written."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from lmlab.apps.cli import main

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_commands_work(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LMLAB_HOME", raising=False)
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("lmlab ")]
    assert len(commands) >= 8
    for command in commands:
        monkeypatch.setattr(sys, "argv", shlex.split(command, comments=True))
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert ended.value.code == 0, f"{command}: {shown.err}"
        assert shown.out.strip(), f"{command} says nothing"
    assert (tmp_path / "lab" / "reports" / "demo-quick" / "index.html").exists()


def test_the_python_lines_work(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LMLAB_HOME", raising=False)
    (code,) = blocks("python")
    scope: dict = {}
    exec(compile(code, str(README), "exec"), scope)
    assert [run.status for run in scope["runs"]] == ["finished", "finished"]
    assert scope["figure"].get_axes()


def test_every_file_it_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert (README.parent / link).exists(), link
