import csv
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from lmlab.reports.tables import FIRST, Comparison
from lmlab.runs.extrema import t_quantile
from lmlab.studies.recipes import Band

LSTM, GPT = "arithmetic-lstm", "arithmetic-gpt"


def cells(comparison: Comparison, name: str):
    return next(row.cells for row in comparison.rows if row.quantity.name == name)


def lines(comparison: Comparison) -> dict[tuple[str, str], dict[str, str]]:
    return {(line["quantity"], line["model"]): line for line in csv.DictReader(StringIO(comparison.csv()))}


def shown(comparison: Comparison) -> str:
    console = Console(width=160, record=True, file=StringIO(), force_terminal=True, color_system="standard")
    console.print(comparison.rich())
    return console.export_text(styles=True)


@pytest.fixture
def told(study, keep):
    """Both models generalise in both seeds, the GPT earlier: numbers that are easily worked out by hand."""
    vals = {(LSTM, 0): 60, (LSTM, 42): 100, (GPT, 0): 20, (GPT, 42): 50}
    runs = [
        keep(
            label,
            spec,
            {0: 0.0, 10: 1.0, 100: 1.0},
            {0: 0.0, vals[label, spec.seed]: 1.0},
            {0: 3.0, 100: 0.02 / (1 + spec.seed)},
        )
        for label, spec in study.runs()
    ]
    return study, runs


def test_numbers_of_trained_runs(trained):
    study, lab = trained
    comparison = Comparison.of(study, lab.runs())
    assert comparison.columns == (LSTM, GPT)
    for (name, model), line in lines(comparison).items():
        if name == FIRST:
            continue
        values = [run.extrema()[name] for run in lab.runs() if run.row.label == model]
        one, other = (float(value) for value in values if value is not None)
        assert float(line["mean"]) == pytest.approx((one + other) / 2)
        assert float(line["std"]) == pytest.approx(abs(one - other) / 2)
        assert (line["n"], line["low"], line["high"]) == ("2", "", "")


def test_extrema_come_from_the_rows_of_the_store(trained):
    study, lab = trained
    runs = [run for run in lab.runs() if run.row.label == GPT]
    best = [
        min(row.value for row in lab.store.metrics(run.id) if (row.metric, row.split) == ("loss", "val"))
        for run in runs
    ]
    assert float(lines(Comparison.of(study, runs))["loss_val", GPT]["mean"]) == pytest.approx(sum(best) / 2)


def test_cells_read_mean_and_std_with_single_values_below_three_seeds(told):
    lstm, gpt = cells(Comparison.of(*told), FIRST)
    assert (lstm.text, lstm.detail) == ("80 ± 20", "60; 100")
    assert (gpt.text, gpt.detail) == ("35 ± 15", "20; 50")
    lstm, gpt = cells(Comparison.of(*told), "delay_accuracy")
    assert (lstm.text, gpt.text) == ("70 ± 20", "25 ± 15")


def test_best_is_bold_ties_too_and_never_with_one_column(told):
    study, runs = told
    comparison = Comparison.of(study, runs)
    assert [cell.best for cell in cells(comparison, FIRST)] == [False, True]
    assert [cell.best for cell in cells(comparison, "accuracy_val")] == [True, True]
    assert "**35 ± 15**" in comparison.markdown()
    assert "**80 ± 20**" not in comparison.markdown()
    assert "<strong>35 ± 15</strong>" in comparison.html()
    assert "\x1b[1m35 ± 15" in shown(comparison)
    alone = Comparison.of(study, [run for run in runs if run.row.label == GPT])
    assert not any(cell.best for row in alone.rows for cell in row.cells)


def test_interval_from_three_seeds_on(study, keep):
    study = replace(study, seeds=(0, 1, 2), recipes=(GPT,))
    runs = [keep(GPT, spec, {0: 0.0, 10 * (1 + spec.seed): 1.0}, {0: 0.5}) for _, spec in study.runs()]
    comparison = Comparison.of(study, runs)
    (cell,) = cells(comparison, "t_accuracy_train")
    half = t_quantile(0.975, 2) * 10 / 3**0.5  # 10, 20, 30: sample standard deviation 10
    line = lines(comparison)["t_accuracy_train", GPT]
    assert cell.text == "20.0 ± 8.2"
    assert (float(line["low"]), float(line["high"])) == (pytest.approx(20 - half), pytest.approx(20 + half))
    assert cell.detail == "95 %: −4.8 to 44.8"


def test_bands_are_marked_inside_and_outside_and_not_where_there_is_none(told):
    study, runs = told
    bands = {FIRST: Band(60, 70, 80), "t_accuracy_train": Band(5, 7, 9)}
    comparison = Comparison.of(replace(study, bands={LSTM: bands}), runs)
    inside, none = cells(comparison, FIRST)
    outside, _ = cells(comparison, "t_accuracy_train")
    assert (inside.mark, outside.mark, none.mark) == ("✓", "✗", "")
    table = lines(comparison)
    assert [table[FIRST, LSTM]["band"], table["t_accuracy_train", LSTM]["band"]] == ["inside", "outside"]
    assert table[FIRST, GPT]["band"] == ""
    assert 'class="inside"' in comparison.html()
    assert 'class="outside"' in comparison.html()
    assert "80 ± 20 ✓ (60; 100, band 60 to 80)" in comparison.markdown()
    assert "✗" in shown(comparison)


def test_bands_of_a_recipe_do_not_hold_for_points_of_an_axis(study, keep):
    study = replace(
        study, recipes=(GPT,), axes={"task.fraction": (0.4, 0.6)}, bands={GPT: {"accuracy_train": Band(0, 0, 2)}}
    )
    runs = [keep(GPT, spec, {0: 0.0, 100: 1.0}) for _, spec in study.runs()]
    comparison = Comparison.of(study, runs)
    assert comparison.columns == (f"{GPT}, task.fraction = 0.4", f"{GPT}, task.fraction = 0.6")
    assert {cell.mark for row in comparison.rows for cell in row.cells} == {""}


def test_a_threshold_that_is_not_reached_is_said_and_never_averaged(trained):
    study, lab = trained
    comparison = Comparison.of(study, lab.runs())
    assert {cell.text for cell in cells(comparison, FIRST)} == {"not reached in 24 steps"}
    line = lines(comparison)[FIRST, GPT]
    assert (line["mean"], line["n"], line["not_reached"], line["limit"]) == ("", "2", "2", "24")


def test_some_seeds_that_do_not_reach_it_leave_no_mean_and_no_best(told):
    study, runs = told
    comparison = Comparison.of(replace(study, threshold=1.0), runs[:3])
    assert [cell.text for cell in cells(comparison, FIRST)] == ["80 ± 20", "20"]
    censored = Comparison.of(study, [*runs[:2], runs[2]])
    assert [cell.best for cell in cells(censored, FIRST)] == [False, True]


def test_one_of_two_seeds_not_reaching_it(study, keep):
    runs = [
        keep(label, spec, {0: 0.0, 100: 1.0}, {0: 0.0, 50: 0.5 if (label, spec.seed) == (GPT, 42) else 1.0})
        for label, spec in study.runs()
    ]
    comparison = Comparison.of(study, runs)
    lstm, gpt = cells(comparison, FIRST)
    assert (lstm.text, gpt.text) == ("50 ± 0", "50; not reached in 100 steps")
    assert not lstm.best
    assert not gpt.best


def test_all_against_none_is_decided_for_all(study, keep):
    runs = [keep(label, spec, {0: 0.0}, {0: 0.0, 50: 1.0 if label == GPT else 0.1}) for label, spec in study.runs()]
    assert [cell.best for cell in cells(Comparison.of(study, runs), FIRST)] == [False, True]


def test_runs_that_are_not_finished_are_named_and_not_averaged(study, keep, lab):
    (_, good), (_, bad) = (run for run in study.runs() if run[0] == GPT)
    lab.register(study.runs())
    keep(GPT, good, {0: 0.0, 100: 0.8}, {0: 0.0, 100: 0.6})
    keep(GPT, bad, {0: 0.0, 30: 1.0}, {0: 0.0, 30: 1.0}, status="diverged")
    comparison = Comparison.of(study, lab.runs())
    assert float(lines(comparison)["accuracy_train", GPT]["mean"]) == 0.8
    assert f"{GPT}, seed 42 (run {bad.run_id}): diverged at step 30 of 100; not in the statistics." in comparison.notes
    assert any(note.startswith(f"{LSTM}, seed 0") and "waiting, not begun" in note for note in comparison.notes)
    for text in (comparison.html(), comparison.markdown(), shown(comparison).replace("\n", " ")):
        assert bad.run_id in text


def test_a_task_without_validation_has_no_empty_rows(study, keep):
    runs = [keep(label, spec, {0: 0.0, 100: 1.0}) for label, spec in study.runs()]
    names = [row.quantity.name for row in Comparison.of(study, runs).rows]
    assert names == ["accuracy_train", "t_accuracy_train"]
