"""Define published results for ResNet50 and Inception-V3 on shared GPUs. The figure `background`
shows these results beside measurements of the same models.

The values come from two figures of the PERSEUS study: LeMay, Li and Guo, "PERSEUS: Characterizing
Performance and Cost of Multi-Tenant Serving for CNN Models" (IC2E 2020). The figures are in the
repository cake-lab/perseus (data/img/multi.png and data/img/multi_peak_throughput.png). The values
are read from the centres of the marks, with an error of 1 request/s, or of 2 requests/s if a line
covers a mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Point = tuple[float, float]

RESNET50, INCEPTION_V3 = "resnet50", "inception_v3"

POINTS_RPS: Mapping[str, tuple[Point, ...]] = {
    "one P4": ((204, 0), (194, 9), (147, 60), (100, 93), (50, 116), (9, 149), (0, 155)),
    "two P4": ((398, 0), (368, 24), (252, 172), (194, 193), (98, 233), (22, 287), (0, 305)),
    "one T4": ((256, 0), (241, 11), (176, 80), (126, 126), (64, 157), (9, 198), (0, 207)),
    "two T4": ((495, 0), (445, 25), (313, 187), (238, 243), (121, 314), (37, 355), (0, 393)),
}
"""Points of (requests/s of ResNet50, requests/s of Inception-V3) that one server carries with a p95
of both models <= 750 ms, by number and type of GPUs."""


def shares(searched: str, background: str) -> Iterator[tuple[str, list[Point]]]:
    """Yield the published points with load on both models, by number and type of GPUs.

    A point has the rate of the background model and the rate of the searched model, each divided by
    the dedicated peak of the model. If the two models are not the published pair, yield nothing.
    """
    if {searched, background} != {RESNET50, INCEPTION_V3}:
        return
    for gpus, points in POINTS_RPS.items():
        resnet50_rps, inception_v3_rps = points[0][0], points[-1][1]
        both = [(r / resnet50_rps, i / inception_v3_rps) for r, i in points[1:-1]]
        yield gpus, both if background == RESNET50 else [(i, r) for r, i in both]
