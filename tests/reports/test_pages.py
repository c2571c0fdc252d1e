from lmlab.reports.pages import symbols


def test_symbols_get_subscripts_and_everything_else_is_escaped():
    assert symbols("t_f(A_val) <b>") == "<i>t</i><sub>f</sub>(<i>A</i><sub>val</sub>) &lt;b&gt;"
    assert symbols("Δt(L)") == "Δ<i>t</i>(<i>L</i>)"


def test_words_with_underscores_are_left_alone():
    assert symbols("at_fault, eval_first") == "at_fault, eval_first"
