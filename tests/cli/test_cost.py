"""`lmlab cost`"""

import pytest


@pytest.mark.parametrize(
    ("recipe", "total", "without_embedding"),
    [("arithmetic-gpt", 404_516, 399_908), ("arithmetic-lstm", 272_420, 267_812)],
)
def test_parameters_of_the_recipes(lmlab, here, recipe, total, without_embedding):
    found = lmlab("cost", recipe, "--json").json
    assert found["parameters"]["total"] == total
    assert found["parameters"]["non_embedding"] == without_embedding
    assert found["parameters"]["embedding"] == total - without_embedding
    assert found["tokens"] == 6  # BOS a + b = r
    assert found["flops"].keys() == {"forward", "backward", "train", "generate"}
    assert found["flops"]["train"] == found["flops"]["forward"] + found["flops"]["backward"]
    assert found["sequential_matmuls"].keys() == {"forward", "backward", "generate"}
    assert list(here.iterdir()) == []


def test_tokens_and_settings_are_heard(lmlab):
    found = lmlab(
        "cost", "arithmetic-lstm", "--tokens=10", "--set=model.width=8", "--set=model.layers=3", "--json"
    ).json
    assert found["tokens"] == 10
    assert found["flops"]["forward"] == 16 * 10 * 3 * 8**2
    assert found["sequential_matmuls"] == {"forward": 30, "backward": 60, "generate": 30}


def test_for_people_closed_forms_stand_beside_counted_numbers(lmlab):
    outcome = lmlab("cost", "arithmetic-gpt")
    assert (outcome.status, outcome.err) == (0, "")
    for text in ("404,516", "399,908", "4L(D² + bD)", "24·L·T·D² + 4·L·T²·D", "1,024"):
        assert text in outcome.out
    forward = next(line for line in outcome.out.splitlines() if "24·L·T·D²" in line and "forward" in line)
    assert forward.count("4,755,456") == 2  # 24·2·6·128² + 4·2·6²·128, in closed form and counted
