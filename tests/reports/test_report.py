import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from PIL import Image

from lmlab.core.errors import LabError
from lmlab.reports import report as module
from lmlab.reports.report import Report, make_report
from lmlab.reports.style import PANEL_INCHES, PNG_DPI
from lmlab.runs.lab import Lab

LSTM, GPT = "arithmetic-lstm", "arithmetic-gpt"


@pytest.fixture(scope="module")
def made(trained, tmp_path_factory: pytest.TempPathFactory) -> Report:
    study, lab = trained
    return make_report(study, lab, tmp_path_factory.mktemp("reports") / "deeper" / "demo")


class Links(HTMLParser):
    """Every place a page can ask the world from, and whether its tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        if tag not in ("meta", "link", "img", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_everything_is_there_and_said_in_json(made):
    shape = made.to_json()
    assert list(shape) == ["directory", "html", "pdf", "markdown", "figures", "tables"]
    assert shape["pdf"] is None
    assert json.loads(json.dumps(shape)) == shape
    names = [
        f"{metric}-{model}{steps}"
        for metric in ("loss", "accuracy")
        for model in (LSTM, GPT)
        for steps in ("", "-linear")
    ]
    assert {path.name for path in made.figures} == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert {path.name for path in made.tables} == {"comparison.csv", "runs.csv"} | {
        f"curves-{metric}-{model}.csv" for metric in ("loss", "accuracy") for model in (LSTM, GPT)
    }
    on_disk = {path for path in made.directory.rglob("*") if path.is_file()}
    assert on_disk == {made.html, made.markdown, *made.figures, *made.tables}
    assert [path.name for path in made.directory.parent.iterdir()] == ["demo"]  # no draft left behind


def test_figures_are_pictures_of_a_sensible_size(made):
    for path in made.figures:
        if path.suffix == ".png":
            with Image.open(path) as image:
                image.verify()
                assert image.size == tuple(round(inches * PNG_DPI) for inches in PANEL_INCHES)
        else:
            assert path.read_text().rstrip().endswith("</svg>")


def test_the_page_asks_nothing_of_the_world(made):
    text = made.html.read_text(encoding="utf-8")
    links = Links(text)
    assert links.open == []
    assert len([link for link in links.found if link.startswith("data:image/svg+xml;base64,")]) == 8
    assert all(link.startswith("data:") for link in links.found)
    assert not re.search(r"https?://|url\(|@import|<script", text)
    for path in made.figures:
        if path.suffix == ".svg":
            asked = re.findall(r"(?:href|src)=\"([^#\"][^\"]*)\"|url\(([^#)]*)\)", path.read_text())
            assert asked == []


def test_markdown_links_to_files_that_exist(made):
    links = re.findall(r"\]\(([^)]+)\)", made.markdown.read_text(encoding="utf-8"))
    assert len(links) == 8
    assert all((made.directory / link).is_file() for link in links)


def test_curves_on_disk_are_those_of_the_store(made, trained):
    _, lab = trained
    run = next(run for run in lab.runs() if (run.row.label, run.seed) == (LSTM, 0))
    with open(made.directory / "tables" / f"curves-loss-{LSTM}.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    curve = run.curve("loss", "train")
    assert [float(line["train_seed_0"]) for line in lines] == curve.values.tolist()
    assert [int(line["step"]) for line in lines] == curve.steps.tolist()


@pytest.mark.parametrize("kind", ["html", "markdown"])
def test_the_page_says_what_was_run_and_what_came_out(made, trained, kind):
    study, lab = trained
    text = getattr(made, kind).read_text(encoding="utf-8")
    assert study.title in text
    assert study.about in text
    assert "miniature" in text
    assert "lmlab study run demo" in text
    assert "runs are done" not in text  # nothing is missing
    for run in lab.runs():
        assert run.id in text
        assert run.row.machine["torch"] in text
        assert f"{sum(parameter.numel() for parameter in run.spec.build_model().parameters()):,}" in text
    assert "not reached in 24 steps" in text
    assert "&#34;name&#34;" in text if kind == "html" else '"name": "gpt"' in text


def test_nothing_done_says_what_is_missing_and_how_to_get_it(trained, study, tmp_path):
    quick, lab = trained
    with pytest.raises(LabError) as caught:
        make_report(study, lab, tmp_path / "report")
    assert str(caught.value) == (
        f"study demo has no finished run in {lab.path}; missing: "
        "arithmetic-lstm (seed 0 not begun, seed 42 not begun), arithmetic-gpt (seed 0 not begun, seed 42 not begun). "
        "Get them with: lmlab study run demo"
    )
    assert not (tmp_path / "report").exists()
    empty = Lab(tmp_path / "empty", create=True)
    with pytest.raises(LabError, match=r"Get them with: lmlab study run demo --quick$"):
        make_report(quick, empty, tmp_path / "report")


@pytest.fixture
def part(study, keep):
    """A study of one model of which one seed is finished, one diverged, one was interrupted and one is not there."""
    study = replace(study, recipes=(GPT,), seeds=(0, 1, 2, 3), title="1 < 2 & <b>", name="part")
    specs = [spec for _, spec in study.runs()]
    losses = {0: 3.0, 10: 1.0}
    keep(GPT, specs[0], {0: 0.0, 50: 1.0, 100: 1.0}, {0: 0.0, 100: 0.95}, losses)
    keep(GPT, specs[1], {0: 0.0, 10: 0.5}, {0: 0.0, 10: 0.5}, losses, status="diverged", note="not finite at step 10")
    keep(GPT, specs[2], {0: 0.0, 20: 0.7}, {0: 0.0, 20: 0.7}, losses, status="interrupted")
    return study, [spec.run_id for spec in specs]


def test_what_is_missing_is_said_on_top_and_a_diverged_run_is_named(part, lab, tmp_path):
    study, ids = part
    made = make_report(study, lab, tmp_path / "report")
    text = made.html.read_text(encoding="utf-8")
    assert "Only 2 of 4 runs are done. Missing: arithmetic-gpt (seed 2 interrupted, seed 3 not begun)" in text
    assert f"seed 1 (run {ids[1]}): diverged at step 10 of 100; not in the statistics." in text
    assert "Seed 1 diverged at step 10 and is drawn up to there." in text
    assert "reached 1.0000 first at step 50 (seed 0)." in text
    assert "<h1>1 &lt; 2 &amp; &lt;b&gt;</h1>" in text
    with open(made.directory / "tables" / "comparison.csv", newline="") as file:
        assert {line["n"] for line in csv.DictReader(file)} == {"1"}


def test_a_newer_report_takes_the_place_of_an_older_one(part, lab, tmp_path):
    study, _ = part
    old = make_report(study, lab, tmp_path / "report")
    (old.directory / "figures" / "of-an-older-report.png").touch()
    first = {path: path.read_bytes() for path in (old.html, old.markdown, *old.figures, *old.tables)}
    new = make_report(study, lab, tmp_path / "report")
    assert {path: path.read_bytes() for path in first} == first  # the same store gives the same bytes
    assert not (new.directory / "figures" / "of-an-older-report.png").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_an_older_report_stays_when_the_new_one_fails(part, lab, tmp_path, monkeypatch):
    study, _ = part
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "index.html").write_text(f"{module.GENERATOR} old")
    monkeypatch.setattr(module, "page", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(LabError, match=r"cannot be written to .*: No space left on device"):
        make_report(study, lab, folder)
    assert (folder / "index.html").read_text().endswith("old")
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_runs_that_all_diverged_at_once_still_make_a_report(study, keep, lab, tmp_path):
    study = replace(study, recipes=(GPT,), seeds=(0,))
    (_, spec) = study.runs()[0]
    keep(GPT, spec, {0: 0.0}, status="diverged")
    text = make_report(study, lab, tmp_path / "report").markdown.read_text(encoding="utf-8")
    assert "No finished run has an accuracy to speak of." in text
    assert f"(run {spec.run_id}): diverged" in text


def test_files_that_are_no_report_are_never_replaced(part, lab, tmp_path, monkeypatch):
    study, _ = part
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(LabError, match="a folder of its own"):
        make_report(study, lab, ".")
    (tmp_path / "thesis.tex").write_text("three years of work")
    with pytest.raises(LabError, match="holds files that are no report"):
        make_report(study, lab, tmp_path)
    with pytest.raises(LabError, match="is a file"):
        make_report(study, lab, tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "three years of work"


def test_points_of_an_axis_get_figures_of_their_own(study, keep, lab, tmp_path):
    study = replace(study, recipes=(GPT,), axes={"task.operator": ("+", "-")}, seeds=(0,))
    for _, spec in study.runs():
        keep(GPT, spec, {0: 0.0, 50: 1.0})
    made = make_report(study, lab, tmp_path / "report")
    assert {path.stem for path in made.figures} == {
        f"accuracy-{GPT}-task.operator{number}{steps}" for number in ("", "-2") for steps in ("", "-linear")
    }
    assert f"{GPT}, task.operator = -" in made.markdown.read_text(encoding="utf-8")
