"""The task of writing what stands before the network of a tenant that gets pictures."""

from __future__ import annotations

from perseus.study.base import Part


class EnsembleTask(Part):
    """The Triton model that preprocesses, and the ensemble of it and the network.

    tenant: the name that Triton serves the ensemble under.
    preprocess, network: the names of its steps.
    max_batch_size: that of the network.
    processes: how many preprocess in parallel, a picture each.
    siblings: the names of all Triton models of the scenario.
    """

    tenant: str
    preprocess: str
    network: str
    max_batch_size: int
    processes: int
    siblings: tuple[str, ...]
