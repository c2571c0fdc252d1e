import csv

import numpy as np
import pytest

from lmlab.core.errors import LabError
from lmlab.reports.figures import LearningCurves, plot_curves
from lmlab.reports.style import Picture


def gpt_runs(lab):
    return [run for run in lab.runs() if run.row.label == "arithmetic-gpt"]


def test_mean_and_population_std_of_trained_runs(trained):
    _, lab = trained
    runs = gpt_runs(lab)
    curves = LearningCurves.of(runs, "loss")
    rows = [
        {(row.step, row.split): row.value for row in lab.store.metrics(run.id) if row.metric == "loss"} for run in runs
    ]
    assert curves.seeds == (0, 42)
    assert curves.steps.tolist() == [0, 1, 2, 3, 4, 10, 20, 24]
    for split in ("train", "val"):
        for index, step in enumerate(curves.steps.tolist()):
            one, other = rows[0][step, split], rows[1][step, split]
            assert curves.mean[split][index] == pytest.approx((one + other) / 2)
            assert curves.std[split][index] == pytest.approx(abs(one - other) / 2)


def test_csv_holds_exactly_what_the_store_holds(trained):
    _, lab = trained
    run = gpt_runs(lab)[1]
    lines = list(csv.DictReader(LearningCurves.of(gpt_runs(lab), "accuracy").csv().splitlines()))
    kept = {row.step: row.value for row in lab.store.metrics(run.id) if (row.metric, row.split) == ("accuracy", "val")}
    assert {int(line["step"]): float(line["val_seed_42"]) for line in lines} == kept


def test_a_run_that_stopped_early_is_in_the_early_means_only(study, keep):
    (_, one), (_, other), *_ = study.runs()
    runs = [
        keep("lstm", one, {0: 0.0, 10: 0.4, 100: 1.0}, {0: 0.0, 10: 0.2, 100: 0.9}),
        keep("lstm", other, {0: 0.2, 5: 0.5}, {0: 0.1, 5: 0.3}, status="diverged"),
    ]
    curves = LearningCurves.of(runs, "accuracy")
    assert curves.steps.tolist() == [0, 5, 10, 100]
    np.testing.assert_allclose(curves.mean["train"], [0.1, 0.5, 0.4, 1.0])
    np.testing.assert_allclose(curves.std["train"], [0.1, 0.0, 0.0, 0.0])
    assert curves.marks is not None
    assert curves.marks.train_best.values == (100,)
    assert curves.csv().splitlines()[2] == "5,0.3,0.0,,0.3,0.5,0.0,,0.5"


def test_marks_and_delay_are_means_over_seeds(study, keep):
    (_, one), (_, other), *_ = study.runs()
    runs = [
        keep("lstm", one, {0: 0.0, 10: 1.0, 60: 1.0}, {0: 0.0, 10: 0.1, 60: 0.9}),
        keep("lstm", other, {0: 0.0, 20: 1.0, 60: 1.0, 100: 1.0}, {0: 0.0, 20: 0.1, 60: 0.8, 100: 1.0}),
    ]
    marks = LearningCurves.of(runs, "accuracy").marks
    assert marks is not None
    assert (marks.train_best.mean, marks.val_mean, marks.delay) == (15, 80, 65)
    late = LearningCurves.of(runs, "accuracy", threshold=0.95).marks
    assert late is not None
    assert (late.val_reached.steps, late.val_mean, late.delay) == ((None, 100), None, None)


def test_the_panel_shows_what_it_says(trained):
    study, lab = trained
    figure = plot_curves(lab.runs(), "accuracy")
    assert isinstance(figure, Picture)
    assert [axes.get_title("left") for axes in figure.axes] == list(study.recipes)
    axes = figure.axes[0]
    assert axes.get_ylim() == (-0.02, 1.02)
    assert axes.get_xlim()[0] < 0 < 24 < axes.get_xlim()[1]
    assert axes.get_xlabel().startswith("step $t$")
    legend = axes.get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words[:2] == ["validation", "training"]
    assert words[-1] == "$A_{val}$ ≥ 0.9 not reached in 24 steps"


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
@pytest.mark.parametrize("log_steps", [True, False])
def test_nothing_lies_over_the_legend_and_nothing_is_cut(study, keep, metric, log_steps):
    (_, one), (_, other), *_ = study.runs()
    runs = [
        keep("lstm", spec, {0: 0.0, 10: 1.0, 100: 1.0}, {0: 0.0, 10: 0.1, late: 1.0}, {0: 3.0, 10: 1e-2, late: 1e-4})
        for spec, late in ((one, 60), (other, 100))
    ]
    figure = plot_curves(runs, metric, log_steps)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    box = legend.get_window_extent()
    assert box.y1 < axes.get_window_extent().y0
    assert box.y1 < axes.xaxis.label.get_window_extent().y0
    for part in (legend, axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts):
        extent = part.get_window_extent()
        assert figure.bbox.x0 <= extent.x0
        assert extent.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= extent.y0
        assert extent.y1 <= figure.bbox.y1


def test_loss_is_logarithmic_and_panels_share_its_range(trained):
    _, lab = trained
    one, other = plot_curves(lab.runs(), "loss").axes
    assert one.get_yscale() == "log"
    assert one.get_ylim() == other.get_ylim()


def test_few_seeds_are_drawn_one_by_one_and_many_are_not(study, keep):
    specs = [spec for label, spec in study.runs() if label == "arithmetic-gpt"]
    specs += [specs[0].with_seed(seed) for seed in (7,)]
    runs = [keep("gpt", spec, {0: 0.1, 100: 1.0}, {0: 0.0, 100: 0.5}) for spec in specs]
    lines = [len(plot_curves(runs[:count]).axes[0].lines) for count in (1, 2, 3)]
    assert lines[1] == lines[0] + 4  # two seeds, two splits
    assert lines[2] == lines[0]


def test_different_runs_are_not_averaged(trained):
    _, lab = trained
    with pytest.raises(LabError, match=r"differ in .*model\.name"):
        LearningCurves.of(lab.runs(), "loss")


def test_nothing_to_draw_is_said_in_one_line(study, lab):
    with pytest.raises(LabError, match="no runs to plot"):
        plot_curves([])
    lab.register(study.runs()[:1])
    with pytest.raises(LabError, match="none of these runs has a curve of 'loss' yet"):
        plot_curves(lab.runs(), "loss")
