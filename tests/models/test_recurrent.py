"""The LSTM against its equations, gate by gate and number by number, and against PyTorch's own."""

from math import exp, tanh

import pytest
import torch

from lmlab.core.errors import ConfigError
from lmlab.models.initial import initialise
from lmlab.models.model import build
from lmlab.models.recurrent import ElmanCell, GRUCell, GRUConfig, LSTMCell, LSTMConfig

DOUBLE = torch.float64


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def slow_cell(x, h, c, W, U, b):
    """One time step of one example on lists of numbers. W, U, b: {gate: matrix or vector}."""

    def affine(gate, row):
        total = b[gate][row]
        total += sum(w * number for w, number in zip(W[gate][row], x, strict=True))
        return total + sum(u * number for u, number in zip(U[gate][row], h, strict=True))

    new_h, new_c = [], []
    for row in range(len(h)):
        i, f, o = (sigmoid(affine(gate, row)) for gate in "ifo")
        candidate = tanh(affine("c", row))
        new_c.append(f * c[row] + i * candidate)
        new_h.append(o * tanh(new_c[-1]))
    return new_h, new_c


def separate_gates(cell: LSTMCell):
    """The shared matrices, cut into one per gate (rows i f o c)."""
    bias = torch.zeros(len(cell.weight_input)) if cell.bias is None else cell.bias
    return tuple(
        {gate: part.tolist() for gate, part in zip("ifoc", whole.chunk(4), strict=True)}
        for whole in (cell.weight_input, cell.weight_hidden, bias)
    )


@pytest.mark.parametrize("bias", [True, False])
def test_a_cell_is_its_equations(bias):
    cell = LSTMCell(3, 2, bias, "pytorch")
    initialise(cell, seed=1)
    cell.double()
    x, h, c = torch.randn(4, 3, dtype=DOUBLE), torch.randn(4, 2, dtype=DOUBLE), torch.randn(4, 2, dtype=DOUBLE)
    new_h, new_c = cell(x, (h, c))
    for b in range(4):
        expected_h, expected_c = slow_cell(x[b].tolist(), h[b].tolist(), c[b].tolist(), *separate_gates(cell))
        assert new_h[b].tolist() == pytest.approx(expected_h, abs=1e-12)
        assert new_c[b].tolist() == pytest.approx(expected_c, abs=1e-12)


def slow_logits(model, tokens: list[int]) -> list[list[float]]:
    """The whole model on one sequence, layer by layer and step by step."""
    rows = [model.embedding.tokens.weight[token].tolist() for token in tokens]
    for cell in model.recurrent.cells:
        W, U, b = separate_gates(cell)
        size = len(U["i"])
        h, c, outputs = [0.0] * size, [0.0] * size, []
        for x in rows:
            h, c = slow_cell(x, h, c, W, U, b)
            outputs.append(h)
        rows = outputs
    return [(model.classifier(torch.tensor(row, dtype=DOUBLE))).tolist() for row in rows]


@pytest.mark.parametrize("fields", [{}, {"hidden": 3}, {"layers": 1}, {"layers": 3, "bias": False}])
def test_the_model_is_a_slow_loop_over_layers_and_steps(fields):
    config = LSTMConfig(**{"width": 4, "init": "pytorch", **fields})
    model = build(config, 7, 5, seed=2, dtype=DOUBLE)
    tokens = torch.randint(7, (2, 5))
    logits, _ = model(tokens)
    for b in range(2):
        torch.testing.assert_close(
            logits[b], torch.tensor(slow_logits(model, tokens[b].tolist()), dtype=DOUBLE), rtol=1e-12, atol=1e-12
        )


def test_the_stack_is_pytorchs_lstm():
    model = build(LSTMConfig(width=5, hidden=6, init="pytorch"), 7, 5, seed=0, dtype=DOUBLE)
    theirs = torch.nn.LSTM(5, 6, num_layers=2, batch_first=True, dtype=DOUBLE)
    with torch.no_grad():
        for layer, cell in enumerate(model.recurrent.cells):
            for name, value in (("weight_ih", cell.weight_input), ("weight_hh", cell.weight_hidden)):
                i, f, o, c = value.chunk(4)
                getattr(theirs, f"{name}_l{layer}").copy_(torch.cat((i, f, c, o)))  # PyTorch's order of gates
            i, f, o, c = cell.bias.chunk(4)
            getattr(theirs, f"bias_ih_l{layer}").copy_(torch.cat((i, f, c, o)))
            getattr(theirs, f"bias_hh_l{layer}").zero_()
    tokens = torch.randint(7, (3, 8))
    logits, state = model(tokens)
    expected, (h, c) = theirs(model.embedding(tokens))
    torch.testing.assert_close(logits, model.classifier(expected), rtol=1e-12, atol=1e-12)
    for layer, (own_h, own_c) in enumerate(state):
        torch.testing.assert_close(own_h, h[layer], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(own_c, c[layer], rtol=1e-12, atol=1e-12)


def parameters(config, vocabulary=36):
    model = build(config, vocabulary, 6, 35)
    total = sum(p.numel() for p in model.parameters())
    return total, total - sum(p.numel() for p in model.embedding.parameters())


def test_document_000s_parameters():
    assert parameters(LSTMConfig()) == (272_420, 267_812)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("layers", "width", "hidden"), [(1, 8, 8), (3, 8, 8), (2, 6, 10)])
def test_parameters_are_the_closed_form(layers, width, hidden, bias):
    """Four gates over [x, h] per layer, and the classifier."""
    expected = 0
    for layer in range(layers):
        inputs = width if layer == 0 else hidden
        expected += 4 * (hidden * (inputs + hidden) + (hidden if bias else 0))
    expected += 36 * hidden + (36 if bias else 0)
    config = LSTMConfig(layers=layers, width=width, hidden=hidden, bias=bias)
    assert parameters(config) == (expected + 36 * width, expected)


def test_tying_saves_a_matrix():
    free, tied = parameters(LSTMConfig())[0], parameters(LSTMConfig(tie=True))[0]
    assert free - tied == 36 * 128


def test_hidden_follows_width_unless_set():
    assert LSTMConfig(width=48).hidden == 48
    assert LSTMConfig(width=48, hidden=20).hidden == 20


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden": 0}, "model.hidden must be between 1 and 65536; got 0."),
        ({"width": 0}, "model.width must be between 1 and 65536; got 0."),
        ({"layers": 0}, "model.layers must be between 1 and 1000; got 0."),
        ({"width": 8, "hidden": 4, "tie": True}, "model.tie needs model.hidden to be model.width (8); got 4."),
        ({"init": "orthogonal"}, "model.init must be 'xavier' or 'pytorch'; got 'orthogonal'."),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(fields, message):
    with pytest.raises(ConfigError) as caught:
        LSTMConfig(**fields)
    assert str(caught.value).startswith(message)


def test_dropout_is_between_layers_only():
    """One layer has no place for it; with two, training sees it and evaluation does not."""
    tokens = torch.randint(7, (4, 5))
    single = build(LSTMConfig(layers=1, width=8, dropout=0.5), 7, 5).train()
    assert torch.equal(single(tokens)[0], single.eval()(tokens)[0])
    double = build(LSTMConfig(layers=2, width=8, dropout=0.5), 7, 5).train()
    plain = build(LSTMConfig(layers=2, width=8), 7, 5)
    assert not torch.allclose(double(tokens)[0], plain(tokens)[0])
    assert torch.equal(double.eval()(tokens)[0], plain(tokens)[0])


def test_the_gates_seen_from_outside_obey_the_equations():
    model = build(LSTMConfig(width=6), 7, 5, dtype=DOUBLE)
    seen = model.look(torch.randint(7, (2, 5)))
    gates, cell = seen.gates, seen.gates["cell"]
    before = torch.cat((torch.zeros_like(cell[:, :, :1]), cell[:, :, :-1]), dim=2)
    torch.testing.assert_close(cell, gates["forget_gate"] * before + gates["input_gate"] * gates["candidate"])
    torch.testing.assert_close(seen.hidden_states, gates["output_gate"] * cell.tanh())


def pytorchs_names(cell, reference, layer=0):
    """Copy a cell's weights into one of PyTorch's recurrent modules."""
    with torch.no_grad():
        getattr(reference, f"weight_ih_l{layer}").copy_(cell.weight_input)
        getattr(reference, f"weight_hh_l{layer}").copy_(cell.weight_hidden)


def test_the_elman_cell_is_pytorchs_rnn():
    cell, reference = ElmanCell(3, 5, bias=True).double(), torch.nn.RNN(3, 5, batch_first=True).double()
    initialise(cell, 0)
    pytorchs_names(cell, reference)
    with torch.no_grad():
        reference.bias_ih_l0.copy_(cell.bias)
        reference.bias_hh_l0.copy_(cell.bias_hidden)
    x = torch.randn(2, 7, 3, dtype=torch.float64)
    state, outputs = (torch.zeros(2, 5, dtype=torch.float64),), []
    for t in range(7):
        state = cell(x[:, t], state)
        outputs.append(state[0])
    torch.testing.assert_close(torch.stack(outputs, 1), reference(x)[0])


def test_the_gru_cell_is_pytorchs_gru_without_biases():
    """PyTorch also applies the reset gate to the product W_hn h, and orders its rows r z n."""
    cell, reference = GRUCell(3, 5, bias=False).double(), torch.nn.GRU(3, 5, bias=False, batch_first=True).double()
    initialise(cell, 0)
    pytorchs_names(cell, reference)
    x = torch.randn(2, 7, 3, dtype=torch.float64)
    state, outputs = (torch.zeros(2, 5, dtype=torch.float64),), []
    for t in range(7):
        state = cell(x[:, t], state)
        outputs.append(state[0])
    torch.testing.assert_close(torch.stack(outputs, 1), reference(x)[0])


def test_gates_of_a_gru_can_be_seen():
    seen = GRUConfig(width=4, layers=2).build(9, 5, None).eval()
    initialise(seen, 0)
    gates = seen.look(torch.tensor([[1, 2, 3]])).gates
    assert set(gates) == {"reset_gate", "update_gate", "candidate"}
    assert all(((gate > 0) & (gate < 1)).all() for name, gate in gates.items() if name != "candidate")
