"""Self-attention with its gradients derived by hand (document 003): what autograd does, written out.

    forward                                 backward, from dL/dX_new
    K = X W_k         (…, T, D_k)           dL/dA_sig = dL/dX_new Vᵀ
    Q = X W_q         (…, T, D_k)           dL/dA_w   = A_sig ⊙ (dL/dA_sig − Σ_j A_sig ⊙ dL/dA_sig) / √D_k
    V = X W_v         (…, T, D_v)           dL/dV     = A_sigᵀ dL/dX_new
    A_w = Q Kᵀ        (…, T, T)             dL/dK     = (dL/dA_w)ᵀ Q
    A_sig = softmax(A_w / √D_k) by rows     dL/dQ     = dL/dA_w K
    X_new = A_sig V   (…, T, D_v)           dL/dW_∗   = Σ over the batch of Xᵀ dL/d∗        for ∗ = k, q, v
                                            dL/dX     = dL/dV W_vᵀ + dL/dK W_kᵀ + dL/dQ W_qᵀ

The Jacobian of a softmax row a = softmax(z) is diag(a) − a aᵀ; multiplied by the gradient g that arrives it gives
a ⊙ (g − Σ_j a_j g_j), so the T × T matrix is never made. The gradient of a weight has the weight's shape, D × D_∗ (the
document's equations 12 to 14 print D_∗ × D).
"""

from __future__ import annotations

from math import inf, sqrt

import torch
from torch import Tensor

from lmlab.core.errors import DataError


class AttentionByHand:
    """X (…, T, D) → X_new (…, T, D_v), and back. W_k, W_q (D, D_k); W_v (D, D_v), where D_v may differ from D_k.

    Every step stays readable under the document's name for it: X, K, Q, V, A_w, A_sig, X_new after `forward`; dLdXnew,
    dLdA_sig, dLdA_w, dLdV, dLdK, dLdQ, dLdWq, dLdWk, dLdWv, dLdX after `backward`. `causal` hides later positions from
    earlier ones: A_w stays whole, A_sig is zero there, and so is dLdA_w.
    """

    def __init__(self, W_k: Tensor, W_q: Tensor, W_v: Tensor, causal: bool = False) -> None:
        if W_k.ndim != 2 or W_k.shape != W_q.shape:
            raise DataError(f"W_k and W_q must be matrices of one shape (D, D_k); got {_of(W_k)} and {_of(W_q)}.")
        if W_v.ndim != 2 or W_v.shape[0] != W_k.shape[0]:
            raise DataError(f"W_v must be (D, D_v) with the D of W_k, {W_k.shape[0]}; got {_of(W_v)}.")
        self.W_k, self.W_q, self.W_v = W_k.detach(), W_q.detach(), W_v.detach()
        self.causal = causal

    @torch.no_grad()
    def forward(self, X: Tensor) -> Tensor:
        """X (B, T, D), or (T, D) → X_new (B, T, D_v)"""
        D, D_k = self.W_k.shape
        if X.ndim < 2 or X.shape[-1] != D:
            raise DataError(f"X must be (B, T, D) with the D of the weights, {D}; got {_of(X)}.")
        self.X = X.detach()
        self.K = self.X @ self.W_k
        self.Q = self.X @ self.W_q
        self.V = self.X @ self.W_v
        self.A_w = self.Q @ self.K.mT
        self.A_sig = self._seen(self.A_w / sqrt(D_k)).softmax(dim=-1)
        self.X_new = self.A_sig @ self.V
        return self.X_new

    @torch.no_grad()
    def backward(self, dLdXnew: Tensor) -> Tensor:
        """dL/dX_new (B, T, D_v) → dL/dX (B, T, D), after a forward pass."""
        if not hasattr(self, "X_new"):
            raise DataError("backward needs the values of a forward pass: call forward first.")
        if dLdXnew.shape != self.X_new.shape:
            raise DataError(f"dLdXnew must have the shape of X_new, {_of(self.X_new)}; got {_of(dLdXnew)}.")
        self.dLdXnew = dLdXnew.detach()
        self.dLdA_sig = self.dLdXnew @ self.V.mT
        arriving = (self.A_sig * self.dLdA_sig).sum(dim=-1, keepdim=True)
        self.dLdA_w = self.A_sig * (self.dLdA_sig - arriving) / sqrt(self.W_k.shape[1])
        self.dLdV = self.A_sig.mT @ self.dLdXnew
        self.dLdK = self.dLdA_w.mT @ self.Q
        self.dLdQ = self.dLdA_w @ self.K
        self.dLdWq = _over_batch(self.X, self.dLdQ)
        self.dLdWk = _over_batch(self.X, self.dLdK)
        self.dLdWv = _over_batch(self.X, self.dLdV)
        self.dLdX = self.dLdV @ self.W_v.mT + self.dLdK @ self.W_k.mT + self.dLdQ @ self.W_q.mT
        return self.dLdX

    __call__ = forward

    def _seen(self, scores: Tensor) -> Tensor:
        if not self.causal:
            return scores
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        return scores.masked_fill(later, -inf)


def _over_batch(X: Tensor, gradient: Tensor) -> Tensor:
    """Σ over the batch of Xᵀ gradient: one product over all positions of all examples.   → (D, D_∗)"""
    return X.flatten(0, -2).mT @ gradient.flatten(0, -2)


def _of(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))
