from dataclasses import replace

from lmlab.reports.figures import LearningCurves
from lmlab.reports.groups import group_runs
from lmlab.reports.words import figure_caption, figure_text, table_caption
from lmlab.studies.recipes import Band


def test_every_symbol_of_the_table_is_explained(trained):
    study, lab = trained
    groups = group_runs(lab.runs(), study)
    symbols = " ".join(symbol for symbol, _ in table_caption(study, groups))
    for symbol in ("t", "L_train", "L_val", "A_train", "A_val", "t_f(X)", "Δt(L)", "Δt(A)", "±", "A_val ≥ 0.9", "bold"):
        assert symbol in symbols
    assert "✓" not in symbols
    banded = replace(study, bands={"arithmetic-gpt": {"loss_val": Band(0, 1, 2)}})
    assert "✓ ✗" in dict(table_caption(banded, groups))


def test_a_caption_says_only_what_the_figure_shows(study, keep):
    spec = study.runs()[0][1]
    (group,) = group_runs([keep("lstm", spec, {0: 0.0, 10: 1.0, 100: 1.0}, {0: 0.0, 100: 0.95})])
    reached = figure_caption(LearningCurves.of(group.drawn, "accuracy"), group)
    assert "A_val first reaches the threshold 0.9 (dotted); the bracket is the delay" in reached
    assert "±" not in reached
    missed = figure_caption(LearningCurves.of(group.drawn, "accuracy", threshold=0.99), group)
    assert "no delay is drawn" in missed


def test_the_figure_in_words(study, keep):
    spec = study.runs()[0][1]
    run = keep("lstm", spec, {0: 0.0, 100: 1.0}, {0: 0.125, 100: 0.95})
    assert figure_text(LearningCurves.of([run], "accuracy")) == (
        "Accuracy of lstm over 100 steps: validation from 0.1250 to 0.9500 and training from 0.0000 to 1.0000."
    )
