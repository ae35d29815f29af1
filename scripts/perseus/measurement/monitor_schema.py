"""Define the columns of monitor.parquet, and every metric with its unit and meaning."""

from __future__ import annotations

import pyarrow as pa

from perseus.host import gpu, powercap
from perseus.host.parquet import REAL, TEXT, WHOLE, column

METRICS = {
    "server_cpu_cores": (
        "mean number of CPU cores that the server and its Python backends used since the previous"
        " sample"
    ),
    "server_rss_bytes": (
        "sum of the resident memory of the server's processes, in bytes. Pages that several"
        " processes share (libraries, shared-memory regions) count once for each process."
    ),
    "server_open_files": (
        "number of file descriptors that the server's processes have open. No value if the"
        " processes belong to another user."
    ),
    "client_cpu_cores": (
        "mean number of CPU cores that the measuring process and its children (except the server's"
        " processes) used since the previous sample"
    ),
    "server_cores_busy": (
        "mean utilisation (0..1) of the server's cores by all processes since the previous sample"
    ),
    "client_cores_busy": (
        "mean utilisation (0..1) of the client's cores by all processes since the previous sample"
    ),
    "host_memory_used_bytes": "memory in use on the host, in bytes",
    "network_received_bytes": (
        "bytes that the host received since the previous sample: on the loopback interface if the"
        " server is on this host, and on all other interfaces if the server is on another host"
    ),
    "network_sent_bytes": (
        "bytes that the host sent since the previous sample, on the same interfaces as"
        " network_received_bytes"
    ),
    "scrape_failures": "1 if Perseus could not read Triton's metrics for this sample, else 0",
    "nv_inference_*": (
        "Triton's metrics per model (column tenant). For a counter, the value is the increase since"
        " the previous successful reading, summed over the model's versions, devices and reasons"
        " of failure. Counters with names *_us are in microseconds. For a gauge"
        " (nv_inference_pending_request_count), the value is the gauge itself."
    ),
    "nv_cpu_*": (
        "Triton's gauges of the CPUs and the memory of its host. Utilization is 0..1, and memory is"
        " in bytes."
    ),
    **powercap.METRICS,
    **gpu.METRICS,
    "nv_gpu_*": (
        "Triton's gauges of its GPUs. Each value is the sum over all GPUs. The utilization of one"
        " GPU is 0..1, so the sum may exceed 1. Memory is in bytes, and power is in watts."
    ),
}
"""Every metric with its unit and meaning; `*` stands for the rest of the name of a Triton metric.
"""

_NAME = pa.dictionary(pa.int32(), TEXT)

MONITOR_SCHEMA = pa.schema(
    [
        column(
            "time_ns",
            WHOLE,
            "ns",
            "time of the sample on the monotonic clock, from time.monotonic_ns()",
            nullable=False,
        ),
        column("metric", _NAME, "", "name of the metric", nullable=False),
        column(
            "tenant",
            TEXT,
            "",
            "name of the Triton model that the metric describes. Null for metrics of the host or a"
            " GPU.",
        ),
        pa.field("value", REAL, nullable=False, metadata={"unit": "per metric", **METRICS}),
        column(
            "gpu", pa.int32(), "", "index of the GPU. Null for metrics that do not describe a GPU."
        ),
    ]
)
"""Schema of monitor.parquet. The metadata of each field states its unit."""
