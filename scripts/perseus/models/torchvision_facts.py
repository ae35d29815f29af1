"""Write architectures.csv: what torchvision states about its classification networks.

The module `study.architectures` reads architectures.csv.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator

from perseus.models.networks import import_torchvision

COLUMNS = ["architecture", "weights", "default", "input_px", "gflops", "parameters", "top1"]
COLUMNS += ["recipe"]


def rows() -> Iterator[dict[str, object]]:
    """Yield one row of architectures.csv for each pair of architecture and trained weights."""
    _, torchvision = import_torchvision()
    for name in torchvision.models.list_models(torchvision.models):
        choices = torchvision.models.get_model_weights(name)
        for weights in choices:
            meta = weights.meta
            yield {
                "architecture": name,
                "weights": weights.name,
                "default": "yes" if weights == choices.DEFAULT else "no",
                "input_px": weights.transforms().crop_size[0],
                "gflops": meta["_ops"],
                "parameters": meta["num_params"],
                "top1": meta["_metrics"]["ImageNet-1K"]["acc@1"],
                "recipe": recipe(meta.get("recipe", "")),
            }


def recipe(url: str) -> str:
    """Return the URL of a training recipe without "https://github.com/"; "not stated" if empty."""
    return url.removeprefix("https://github.com/").rstrip("/") or "not stated"


if __name__ == "__main__":
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows())
