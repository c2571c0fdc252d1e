import torch
from torch import nn

from lmlab.models.initial import initialise
from lmlab.models.layers import Linear, classifier


def test_a_linear_layer_is_pytorchs():
    ours, theirs = Linear(3, 5), nn.Linear(3, 5)
    initialise(ours, seed=0)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 4, 3)
    torch.testing.assert_close(ours(x), theirs(x))
    assert Linear(3, 5, bias=False).bias is None


def test_a_classifier_has_its_own_matrix_or_the_embeddings():
    table = nn.Parameter(torch.randn(7, 3))
    tied, free = classifier(3, 7, True, table), classifier(3, 7, True, None)
    initialise(free, seed=0)
    assert tied.weight is table
    assert free.weight.shape == (7, 3)
    x = torch.randn(2, 3)
    tied.bias.data.zero_()
    torch.testing.assert_close(tied(x), x @ table.T)
