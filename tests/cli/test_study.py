"""`lmlab study …`: the miniature of the demo, from list to report."""

from pathlib import Path

import pytest

from lmlab.runs.lab import Lab
from lmlab.studies.study import studies


@pytest.fixture(scope="module")
def done(lmlab, tmp_path_factory) -> tuple[Path, dict]:
    """A lab in which the demo's miniature was run, and what the command told."""
    lab = tmp_path_factory.mktemp("demo") / "lab"
    return lab, lmlab("study", "run", "demo", "--quick", "--device=cpu", "--lab", lab, "--json").json


def quick_ids() -> list[str]:
    return [spec.run_id for _, spec in studies["demo"].quick().runs()]


def test_list(lmlab, here):
    told = lmlab("study", "list", "--json").json["studies"]
    assert [study["study"] for study in told] == list(studies)
    assert {study["study"]: study["runs"] for study in told}["sanity"] == 4
    assert "Sanity check" in lmlab("study", "list").out
    assert list(here.iterdir()) == []


def test_show_says_what_a_study_would_run(lmlab, here):
    told = lmlab("study", "show", "demo", "--quick", "--json").json
    assert told["study"] == "demo-quick"
    assert [run["run"] for run in told["runs"]] == quick_ids()
    assert {run["status"] for run in told["runs"]} == {"waiting"}
    assert list(here.iterdir()) == []


def test_other_seeds_can_be_asked_for(lmlab):
    told = lmlab("study", "show", "demo", "--seeds=1,2,3", "--json").json
    assert [run["seed"] for run in told["runs"]] == [1, 2, 3] * 2


def test_status_of_a_study_not_begun(lmlab, here):
    told = lmlab("study", "status", "demo", "--json").json
    assert (told["study"], told["counts"], told["seconds_left"]) == ("demo", {"waiting": 4}, None)
    assert len(told["runs"]) == 4
    assert list(here.iterdir()) == []


def test_run(done):
    lab, told = done
    assert (told["study"], told["counts"]) == ("demo-quick", {"finished": 4})
    assert [run["run"] for run in told["runs"]] == quick_ids()
    for run in told["runs"]:
        assert run["status"] == "finished"
        assert run["final"] == Lab(lab).run(run["run"]).final()


def test_a_second_time_nothing_is_trained(done, lmlab):
    lab, told = done
    before = Lab(lab).store.runs()
    assert lmlab("study", "run", "demo", "--quick", "--lab", lab, "--json").json == told
    assert Lab(lab).store.runs() == before


def test_status_of_a_finished_study(done, lmlab):
    lab, _ = done
    told = lmlab("study", "status", "demo", "--quick", "--lab", lab, "--json").json
    assert (told["study"], told["counts"], told["seconds_left"]) == ("demo-quick", {"finished": 4}, 0)
    assert [run["run"] for run in told["runs"]] == quick_ids()
    assert lmlab("study", "status", "demo", "--lab", lab, "--json").json["counts"] == {"waiting": 4}


def test_for_people_a_table_compares_the_models(done, lmlab):
    lab, _ = done
    shown = lmlab("study", "run", "demo", "--quick", "--lab", lab)
    assert (shown.status, shown.err) == (0, "")
    assert "4 finished" in shown.out


def test_report(done, lmlab, here):
    lab, _ = done
    told = lmlab("study", "report", "demo", "--quick", "--lab", lab, "--json").json
    assert told.keys() >= {"directory", "html", "pdf", "markdown", "figures", "tables"}
    directory = Path(told["directory"])
    assert directory == lab / "reports" / "demo-quick"
    for name in ("html", "markdown", *(["pdf"] if told["pdf"] else [])):
        assert Path(told[name]).parent == directory
        assert Path(told[name]).stat().st_size > 0
    assert {Path(figure).suffix for figure in told["figures"]} == {".png", ".svg"}
    assert {Path(table).suffix for table in told["tables"]} == {".csv"}
    for file in [*told["figures"], *told["tables"]]:
        assert Path(file).stat().st_size > 0
    assert list(here.iterdir()) == []


def test_a_report_goes_where_it_is_told_to(done, lmlab, here):
    lab, _ = done
    told = lmlab("study", "report", "demo", "--quick", "--lab", lab, "-o", here / "out", "--json").json
    assert Path(told["directory"]) == here / "out"
    assert (here / "out" / "index.html").is_file()
