"""What is known of a load line before it is searched."""

from __future__ import annotations

from dataclasses import dataclass

from perseus.peak.load_line import LoadLine
from perseus.peak.virtual_queue import VirtualQueue
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals


@dataclass(frozen=True)
class LineModel:
    """A load line, the SLA of each tenant, the process of arrivals, and a model of the server."""

    line: LoadLine
    slas: tuple[Sla, ...]
    arrivals: Arrivals
    queue: VirtualQueue
