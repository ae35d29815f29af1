"""Define the columns of monitor.parquet, and every metric with its unit and meaning."""

from __future__ import annotations

import pyarrow as pa

from perseus.host import gpu, powercap
from perseus.host.parquet import REAL, TEXT, WHOLE, column

METRICS = {
    "server_cpu_cores": "CPU cores that the server and its Python backends used since the previous"
    " sample",
    "server_rss_bytes": (
        "bytes; sum of the resident memory of the server's processes: pages that several processes"
        " share (libraries, shared-memory regions) count once for each process"
    ),
    "server_open_files": "file descriptors that the server's processes have open; no value if the"
    " processes belong to another user",
    "client_cpu_cores": (
        "CPU cores that the measuring process and its children, except the server's processes, used"
        " since the previous sample"
    ),
    "server_cores_busy": "mean share (0..1) of the time since the previous sample in which the"
    " server's cores were busy with any process",
    "client_cores_busy": "mean share (0..1) of the time since the previous sample in which the"
    " client's cores were busy with any process",
    "host_memory_used_bytes": "bytes of memory in use on the host",
    "network_received_bytes": "received bytes since the previous sample, on the loopback "
    "interface if the server is on this host, else on all other interfaces",
    "network_sent_bytes": "sent bytes since the previous sample, on the same interfaces as "
    "network_received_bytes",
    "scrape_failures": "failed scrapes of Triton's metrics since the previous sample (0 or 1)",
    "nv_inference_*": "Triton's metrics per model (column tenant). Counters: increase since the "
    "previous successful scrape, summed over versions, devices and reasons of failure; *_us in "
    "microseconds. Gauges (nv_inference_pending_request_count): the value itself",
    "nv_cpu_*": "Triton's gauges of its host: utilization 0..1, memory in bytes",
    **powercap.METRICS,
    **gpu.METRICS,
    "nv_gpu_*": "Triton's gauges of its GPUs, summed over all GPUs: utilization (0..1 per GPU), "
    "memory in bytes, power in watts",
}
"""Every metric with its unit and meaning; `*` stands for the rest of the name of a Triton
metric."""

_NAME = pa.dictionary(pa.int32(), TEXT)

MONITOR_SCHEMA = pa.schema(
    [
        column("time_ns", WHOLE, "ns", "time of the sample, time.monotonic_ns()", nullable=False),
        column("metric", _NAME, "", "name of the metric", nullable=False),
        column("tenant", TEXT, "", "Triton model; null for metrics of the host"),
        pa.field("value", REAL, nullable=False, metadata={"unit": "per metric", **METRICS}),
        column("gpu", pa.int32(), "", "number of the GPU; null for metrics that are not of a GPU"),
    ]
)
"""Schema of monitor.parquet. The metadata of the fields contains the units."""
