"""AdamW on one flat buffer, and the running mean of its way.

``torch.optim.AdamW.step`` spends many times as long in Python as in the update when there is one
small tensor. So its fused kernel is called directly where there is one, and the update is written
out elsewhere; tests hold both equal to torch's.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

FUSED_DEVICES = ("cpu", "cuda")
BETA1, BETA2 = 0.9, 0.999  # decay of the running mean and of the running square of the gradient
EPS = 1e-8  # added to the root of the running square


class FlatAdamW:
    """AdamW for parameters (K, P) of K models that step together; they are updated in place.

    ``average`` is the mean of the parameters over the last ``averaged_steps`` steps or so, each
    weighing less than the one after it; the parameters themselves if there are none. At a constant
    rate it is where a falling rate would lead to, and is to be had after every step.
    """

    def __init__(
        self, parameters: Tensor, weight_decay: float, *, averaged_steps: int | None = None
    ) -> None:
        self.parameters = parameters
        self.weight_decay = weight_decay  # decoupled, as a share of the learning rate
        self.mean = torch.zeros_like(parameters)
        self.square = torch.zeros_like(parameters)
        self.n_steps = 0
        self.averaged_steps = averaged_steps
        self.average = parameters if averaged_steps is None else parameters.clone()
        self._step_number = torch.zeros((), device=parameters.device)
        # The kernel behind torch.optim.AdamW(fused=True) has no public name of its own.
        fused = getattr(torch, "_fused_adamw_", None)
        self._fused = fused if parameters.device.type in FUSED_DEVICES else None

    def step(self, gradients: Tensor, learning_rate: float) -> None:
        """Move the parameters once."""
        self.n_steps += 1
        if self._fused is None:
            self._step_written_out(gradients, learning_rate)
        else:
            self._step_fused(gradients, learning_rate)
        if self.averaged_steps is not None:
            # At first the mean of all steps, so that it forgets where it began.
            self.average.lerp_(self.parameters, max(1 / self.averaged_steps, 1 / self.n_steps))

    def _step_fused(self, gradients: Tensor, learning_rate: float) -> None:
        assert self._fused is not None
        self._fused(
            [self.parameters],
            [gradients],
            [self.mean],
            [self.square],
            [],
            [self._step_number.fill_(self.n_steps)],
            lr=learning_rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=self.weight_decay,
            eps=EPS,
            amsgrad=False,
            maximize=False,
        )

    def _step_written_out(self, gradients: Tensor, learning_rate: float) -> None:
        self.mean.lerp_(gradients, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(gradients, gradients, value=1 - BETA2)
        correction1 = 1 - BETA1**self.n_steps
        correction2 = 1 - BETA2**self.n_steps
        if self.weight_decay:
            self.parameters.mul_(1 - learning_rate * self.weight_decay)
        denominator = self.square.sqrt().div_(math.sqrt(correction2)).add_(EPS)
        self.parameters.addcdiv_(self.mean, denominator, value=-learning_rate / correction1)

    def select(self, parameters: Tensor, models: Sequence[int]) -> None:
        """Go on with these models only, whose parameters are now ``parameters``."""
        averaged = self.averaged_steps is not None
        self.average = self.average[list(models)].clone() if averaged else parameters
        self.parameters = parameters
        self.mean = self.mean[list(models)].clone()
        self.square = self.square[list(models)].clone()
