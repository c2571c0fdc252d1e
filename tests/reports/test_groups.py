from dataclasses import replace

from lmlab.reports.groups import differing, group_runs


def test_runs_that_differ_only_in_seeds_are_one_group(trained):
    study, lab = trained
    groups = group_runs(lab.runs(), study)
    assert [(group.name, [run.seed for run in group.runs]) for group in groups] == [
        ("arithmetic-lstm", [0, 42]),
        ("arithmetic-gpt", [0, 42]),
    ]


def test_axes_are_named_and_never_averaged_over(study, lab):
    study = replace(study, recipes=("arithmetic-gpt",), axes={"task.fraction": (0.4, 0.6)})
    lab.register(study.runs())
    groups = group_runs(lab.runs(), study)
    assert [group.name for group in groups] == [f"arithmetic-gpt, task.fraction = {r}" for r in (0.4, 0.6)]
    alone = [run for run in lab.runs() if run.spec.to_json()["task"]["fraction"] == 0.4]
    assert [group.setting for group in group_runs(alone, study)] == ["task.fraction = 0.4"]


def test_without_a_study_the_setting_is_what_differs_and_not_what_follows_from_it(study, lab):
    lab.register([run for width in (8, 16) for run in replace(study, base={"model.width": width}).runs()])
    assert differing(lab.runs()) != []
    assert [group.name for group in group_runs(lab.runs())] == [
        f"{label}, model.width = {width}" for label in study.recipes for width in (8, 16)
    ]


def test_a_run_shared_with_another_study_has_this_studys_label(study, lab):
    runs = study.runs()
    lab.register([("another name", spec) for _, spec in runs])
    assert {group.label for group in group_runs(lab.runs(), study)} == set(study.recipes)
    assert {group.label for group in group_runs(lab.runs())} == {"another name"}


def test_statistics_are_made_of_finished_runs_and_figures_show_diverged_ones_too(study, keep):
    one, other = (spec for label, spec in study.runs() if label == "arithmetic-gpt")
    runs = [keep("arithmetic-gpt", one, {0: 0.1, 100: 1.0}), keep("arithmetic-gpt", other, {0: 0.1}, status="diverged")]
    (group,) = group_runs(runs)
    assert (group.finished, group.drawn, group.left_out) == (tuple(runs[:1]), tuple(runs), tuple(runs[1:]))
