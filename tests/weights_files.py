"""Files of weights that have the shapes of a network, but no values."""

from __future__ import annotations

from pathlib import Path

from perseus.models.networks import import_torchvision


def write_shapes(path: Path, architecture: str) -> None:
    """Write a state_dict for an architecture of torchvision, with tensors without values."""
    torch, torchvision = import_torchvision()
    options = {"init_weights": False} if architecture == "inception_v3" else {}
    with torch.device("meta"):
        network = torchvision.models.get_model(architecture, weights=None, **options)
    torch.save(network.state_dict(), path)
