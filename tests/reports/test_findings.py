from dataclasses import replace

import pytest

from lmlab.reports.findings import findings, generalises_first
from lmlab.reports.groups import group_runs
from lmlab.reports.tables import Comparison
from lmlab.runs.extrema import t_quantile
from lmlab.studies.recipes import Band

LSTM, GPT = "arithmetic-lstm", "arithmetic-gpt"


@pytest.fixture
def groups(study, keep):
    """groups(lstm=(60, 100), gpt=(20, None)): when each seed generalises; None for never."""

    def make(lstm, gpt, seeds=None):
        chosen = replace(study, seeds=seeds or tuple(range(len(lstm))))
        when = {LSTM: dict(zip(chosen.seeds, lstm, strict=True)), GPT: dict(zip(chosen.seeds, gpt, strict=True))}
        runs = []
        for label, spec in chosen.runs():
            step = when[label][spec.seed]
            val = {0: 0.0, 5: 0.5} if step is None else {0: 0.0, step: 1.0}
            runs.append(keep(label, spec, {0: 0.0, 10 + spec.seed: 1.0, 100: 1.0}, val, {0: 3.0}))
        return chosen, group_runs(runs, chosen)

    return make


def sentences(study, groups) -> dict[str, tuple[str, ...]]:
    runs = [run for group in groups for run in group.runs]
    return {finding.subject: finding.sentences for finding in findings(study, groups, Comparison.of(study, runs))}


def test_each_seed_is_told_below_three(groups):
    said = sentences(*groups((60, 100), (20, 50)))
    assert said[LSTM] == (
        "Memorised: A_train reached 1.0000 first at step 10 (seed 0) and 11 (seed 1).",
        "Generalised: A_val ≥ 0.9 first at step 60 (seed 0) and 100 (seed 1).",
        "Delay between the two, in steps: 50 (seed 0) and 89 (seed 1).",
    )


def test_from_three_seeds_on_mean_std_and_interval_are_told(groups):
    said = sentences(*groups((40, 50, 60), (20, 20, 20)))
    assert said[LSTM][1].startswith("Generalised: A_val ≥ 0.9 first at step 50.0 ± 8.2 (3 seeds, 95 % interval ")


def test_what_did_not_happen_is_said(trained):
    study, lab = trained
    said = sentences(study, group_runs(lab.runs(), study))
    assert said[GPT][0].startswith("Did not memorise: the best A_train was 0.")
    assert said[GPT][1].startswith("Did not generalise: A_val ≥ 0.9 was not reached in 24 steps; the best A_val was ")
    assert len(said[GPT]) == 2
    assert said[f"Which generalises first, {LSTM} or {GPT}?"] == ("Not decided: neither reached A_val ≥ 0.9.",)


def test_without_validation_only_memorising_can_be_told(study, keep):
    study = replace(study, bands={})
    runs = [keep(label, spec, {0: 0.0, 10: 1.0}) for label, spec in study.runs()]
    said = sentences(study, group_runs(runs, study))
    assert list(said) == [LSTM, GPT]
    assert said[GPT][1] == "There was no validation."


def test_a_seed_that_does_not_generalise_is_told_apart(groups):
    said = sentences(*groups((60, None), (20, 50)))
    assert said[LSTM][1] == (
        "Generalised in 1 of 2 seeds: A_val ≥ 0.9 first at step 60 (seed 0) and none (seed 1), "
        "not reached in 100 steps otherwise; the best A_val was 1.0000 (seed 0) and 0.5000 (seed 1)."
    )
    assert said[LSTM][2] == "Delay between the two, in steps: 50 (seed 0)."


@pytest.mark.parametrize(
    ("lstm", "gpt", "state", "start"),
    [
        ((60,), (20,), "undecided", "Not decided by a single seed"),
        ((60, 100), (20, 50), "agree", f"Both seeds agree: {GPT} generalises first"),
        ((60, 30), (20, 50), "undecided", "Not decided: the seeds do not agree"),
        ((60, 50), (20, 50), "undecided", "Not decided: the seeds do not agree"),
        ((60, None), (20, 50), "agree", f"Both seeds agree: {GPT}"),
        ((20, 30, 40), (60, 60, 60), "agree", f"All 3 seeds agree: {LSTM} generalises first"),
        ((None, None), (None, None), "undecided", "Not decided: neither reached"),
        ((60, 70, 80, 90, 100), (20, 30, 40, 50, 50), "decided", f"Decided: {GPT} generalises first"),
        ((20, 90, 20, 90, 50), (60, 60, 60, 60, 60), "undecided", "Not decided: the interval of the difference"),
        ((60, 70, 80, 90, None), (20, 30, 40, 50, 60), "undecided", "Not decided: in 1 of 5 seeds"),
    ],
)  # fmt: skip
def test_which_generalises_first(groups, lstm, gpt, state, start):
    _, (one, other) = groups(lstm, gpt)
    verdict = generalises_first(one, other, 0.9)
    assert verdict.state == state
    assert verdict.text.startswith(start)


def test_five_seeds_are_decided_by_the_interval_of_the_paired_difference(groups):
    # Differences 10, 20, 30, 40, 50: mean 30, sample standard deviation √250, though the two spreads overlap widely.
    _, (one, other) = groups((20, 40, 60, 80, 100), (10, 20, 30, 40, 50))
    half = t_quantile(0.975, 4) * 250**0.5 / 5**0.5
    verdict = generalises_first(one, other, 0.9)
    assert verdict.state == "decided"
    assert f"30 steps, 95 % interval {30 - half:.1f} to {30 + half:.1f}, 5 seeds" in verdict.text


def test_only_seeds_that_both_have_are_compared(groups):
    _, (one, other) = groups((60, 100), (20, 50))
    verdict = generalises_first(one, replace(other, runs=other.runs[:1]), 0.9)
    assert verdict.text.startswith("Not decided by a single seed")
    assert generalises_first(one, replace(other, runs=()), 0.9).text.startswith("Not decided: the two have no")


def test_bands_are_counted_and_what_lies_outside_is_named(groups):
    study, found = groups((60, 100), (20, 50))
    bands = {"first_accuracy_val": Band(30, 40, 50), "accuracy_val": Band(0.9, 1, 1)}
    said = sentences(replace(study, bands={LSTM: bands, GPT: bands}), found)
    assert said["As expected?"] == (
        "3 of 4 means lie inside their expected band; outside: first t with A_val ≥ 0.9 of arithmetic-lstm "
        "(80 ± 20, band 30 to 50).",
    )
