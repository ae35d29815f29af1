"""GPUs without a GPU: NVML is a stand-in, and so are onnxruntime and Triton's backend interface."""

from __future__ import annotations

import math
import sys
from fnmatch import fnmatchcase
from types import ModuleType, SimpleNamespace

import pyarrow.parquet as pq
import pynvml
import pytest
from fake_nvml import FakeNvml

from perseus import gpu
from perseus.monitor import METRICS, Monitor
from perseus.repository import TenantSpec, model_config


def test_a_server_gets_the_gpus_that_it_names_or_a_sentence():
    gpu.require("t4", [0, 1], FakeNvml())
    with pytest.raises(gpu.GpuError, match=r"'t4' needs GPU 1, 2; .*2 GPUs.* so that 2 is missing"):
        gpu.require("t4", [1, 2], FakeNvml())
    with pytest.raises(gpu.GpuError, match=r"NVML finds none here \(Driver Not Loaded\)"):
        gpu.require("t4", [0], FakeNvml(driver=False))


def test_on_a_machine_without_a_driver_the_real_library_says_so():
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        with pytest.raises(gpu.GpuError, match="NVML finds none here"):
            gpu.require("t4", [0])
    else:
        pynvml.nvmlShutdown()


def test_a_sample_has_every_figure_that_a_gpu_tells():
    library = FakeNvml()
    with gpu.opened([0, 1], library) as gpus:
        first = dict(gpus.sample())
        library.energy_mj += 65_000
        second = dict(gpus.sample())
    assert library.opened == 0
    assert second["gpu_0_energy_joules"] == 65 and "gpu_0_energy_joules" not in first
    assert (second["gpu_0_utilization"], second["gpu_1_power_watts"]) == (0.87, 65.5)
    assert (second["gpu_1_sm_clock_mhz"], second["gpu_1_throttle_reasons"]) == (1590, 4)
    assert "gpu_1_energy_joules" not in second  # it has no counter
    for name in second:
        assert any(fnmatchcase(name, pattern) for pattern in METRICS), name
    assert len(second) == 2 * len(gpu.METRICS) - 1


def test_energy_is_known_only_if_all_gpus_tell():
    library = FakeNvml()
    with gpu.opened([0], library) as one, gpu.opened([0, 1], library) as both:
        before = one.energy_joules()
        library.energy_mj += 1000
        assert one.energy_joules() - before == pytest.approx(1)
        assert math.isnan(both.energy_joules())
    with gpu.opened([], library) as none:
        assert math.isnan(none.energy_joules())
        assert none.describe() == {} and dict(none.sample()) == {}


def test_what_the_gpus_are_stands_in_the_record():
    with gpu.opened([0, 1], FakeNvml()) as gpus:
        found = gpus.describe()
    assert (found["driver"], found["cuda"], found["mps"]) == ("580.95", "13.0", False)
    assert [each["mig"] for each in found["gpus"]] == [True, False]
    assert found["gpus"][0]["name"] == "Tesla T4" and found["gpus"][0]["power_limit_watts"] == 70


def test_the_monitor_samples_the_gpus(tmp_path):
    path = tmp_path / "monitor.parquet"
    with (
        gpu.opened([0], FakeNvml()) as gpus,
        Monitor(path, "http://127.0.0.1:9/metrics", None, [], [0], gpus, period_s=0.05),
    ):
        pass
    rows = pq.read_table(path).to_pandas().set_index("metric")["value"]
    assert rows["gpu_0_temperature_celsius"].eq(61).all()
    assert rows["gpu_0_energy_joules"] == 0


def test_instances_are_on_the_gpus_that_are_named():
    spec = TenantSpec("resnet50", "resnet50", instances=2, gpus=(0, 2))
    (group,) = model_config(spec, (3, 224, 224), 1000).instance_group
    assert group.Kind.Name(group.kind) == "KIND_GPU"
    assert (group.count, list(group.gpus)) == (2, [0, 2])
    (group,) = model_config(TenantSpec("a", "a"), (3, 224, 224), 1000).instance_group
    assert group.Kind.Name(group.kind) == "KIND_CPU" and not group.gpus


# --- the backend


class TritonModelError(Exception):
    """As Triton's TritonModelException."""


@pytest.fixture
def backend(monkeypatch):
    """(module of scripts/backends/onnxruntime, the stand-in for onnxruntime)."""
    made = ModuleType("onnxruntime")
    made.__version__ = "1.31.1"
    made.get_available_providers = lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    utils = ModuleType("triton_python_backend_utils")
    utils.TritonModelException = TritonModelError
    monkeypatch.setitem(sys.modules, "onnxruntime", made)
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utils)
    path = gpu.__file__.replace("perseus/gpu.py", "backends/onnxruntime/model.py")
    namespace: dict = {}
    with open(path) as file:  # noqa: PTH123
        exec(compile(file.read(), path, "exec"), namespace)
    return SimpleNamespace(model=namespace["TritonPythonModel"](), onnxruntime=made)


def test_an_instance_on_a_gpu_computes_with_cuda_on_its_device(backend):
    providers = backend.model._providers(
        {"model_instance_kind": "GPU", "model_instance_device_id": "1"}
    )
    assert providers[0] == ("CUDAExecutionProvider", {"device_id": 1})
    cpu = {"model_instance_kind": "CPU", "model_instance_device_id": "0"}
    assert backend.model._providers(cpu) == ["CPUExecutionProvider"]


def test_an_onnxruntime_without_cuda_says_what_to_install(backend):
    backend.onnxruntime.get_available_providers = lambda: ["CPUExecutionProvider"]
    instance = {"model_instance_kind": "GPU", "model_instance_device_id": "0"}
    with pytest.raises(TritonModelError, match=r"has no CUDA: install onnxruntime-gpu"):
        backend.model._providers(instance)
