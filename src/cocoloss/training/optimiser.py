"""AdamW on one flat buffer.

``torch.optim.AdamW.step`` spends many times as long in Python as in the update when there is one
small tensor. So its fused kernel is called directly where there is one, and the update is written
out elsewhere; tests hold both equal to torch's.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

FUSED_DEVICES = ("cpu", "cuda")


class FlatAdamW:
    """AdamW for parameters (K, P) of K models that step together.

    Parameters
    ----------
    parameters : Tensor of shape (K, P)
        Updated in place.
    weight_decay : float
        Decoupled weight decay, as a share of the learning rate.
    betas : tuple of float
        Decay of the running mean and of the running square of the gradient.
    eps : float
        Added to the root of the running square.
    """

    def __init__(
        self,
        parameters: Tensor,
        weight_decay: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.parameters = parameters
        self.weight_decay, self.betas, self.eps = weight_decay, betas, eps
        self.mean = torch.zeros_like(parameters)
        self.square = torch.zeros_like(parameters)
        self.n_steps = 0
        self._step_number = torch.zeros((), device=parameters.device)
        # The kernel behind torch.optim.AdamW(fused=True) has no public name of its own.
        fused = getattr(torch, "_fused_adamw_", None)
        self._fused = fused if parameters.device.type in FUSED_DEVICES else None

    def step(self, gradients: Tensor, learning_rate: float) -> None:
        """Move the parameters once."""
        self.n_steps += 1
        beta1, beta2 = self.betas
        if self._fused is None:
            self._step_written_out(gradients, learning_rate)
            return
        self._fused(
            [self.parameters],
            [gradients],
            [self.mean],
            [self.square],
            [],
            [self._step_number.fill_(self.n_steps)],
            lr=learning_rate,
            beta1=beta1,
            beta2=beta2,
            weight_decay=self.weight_decay,
            eps=self.eps,
            amsgrad=False,
            maximize=False,
        )

    def _step_written_out(self, gradients: Tensor, learning_rate: float) -> None:
        beta1, beta2 = self.betas
        self.mean.lerp_(gradients, 1 - beta1)
        self.square.mul_(beta2).addcmul_(gradients, gradients, value=1 - beta2)
        correction1 = 1 - beta1**self.n_steps
        correction2 = 1 - beta2**self.n_steps
        if self.weight_decay:
            self.parameters.mul_(1 - learning_rate * self.weight_decay)
        denominator = self.square.sqrt().div_(math.sqrt(correction2)).add_(self.eps)
        self.parameters.addcdiv_(self.mean, denominator, value=-learning_rate / correction1)

    def select(self, parameters: Tensor, models: Sequence[int]) -> None:
        """Go on with these models only, whose parameters are now ``parameters``."""
        self.parameters = parameters
        self.mean = self.mean[list(models)].clone()
        self.square = self.square[list(models)].clone()
