"""Sums over the ranks of torch.distributed, for arrays.

Torch is not imported: a program that has ranks has imported it.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError


def ranks_are_there() -> bool:
    """Return whether this program runs as one of several ranks."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return False
    return bool(torch.distributed.is_initialized())


@dataclass(frozen=True)
class Ranks:
    """The ranks of a process group, to which this one belongs."""

    group: Any

    @classmethod
    def of(cls, process_group: Any) -> "Ranks":
        """Return those of a group, or of all there are: "world"."""
        if not ranks_are_there():
            raise CoCoError(
                "a process_group was given, but torch.distributed is not initialised; call "
                "torch.distributed.init_process_group first, or leave process_group out"
            )
        distributed = sys.modules["torch"].distributed
        group = distributed.group.WORLD if process_group == "world" else process_group
        if distributed.get_rank(group) < 0:
            raise CoCoError("this rank is not in the process_group; give the one it belongs to")
        return cls(group)

    def gather(self, value: Any) -> list[Any]:
        """Return what each rank has, in their order: a small value that can be pickled."""
        distributed = sys.modules["torch"].distributed
        gathered: list[Any] = [None] * distributed.get_world_size(self.group)
        distributed.all_gather_object(gathered, value, group=self.group)
        return gathered

    def sum(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the arrays that ranks have, exchanged where their backend wants it."""
        torch = sys.modules["torch"]
        on_gpu = torch.distributed.get_backend(self.group) == "nccl"
        tensor = torch.tensor(array, device="cuda" if on_gpu else "cpu")  # a copy
        torch.distributed.all_reduce(tensor, group=self.group)
        total: NDArray[np.float64] = tensor.cpu().numpy()
        return total
