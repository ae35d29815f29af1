"""Tests of GPUs with a fake NVML: how Perseus finds, describes and samples them."""

from __future__ import annotations

import os
import subprocess
import time
from types import SimpleNamespace

import fake_nvml
import pynvml
import pytest
from fake_nvml import FakeNvml, process_sample

from perseus.host import gpu
from perseus.host.gpu import GpuError, GpuSampler, other_gpu_work

PROCESSES = "nvmlDeviceGetProcessUtilization"
NOBODY = 2**22 + 1  # no Linux process has this id


@pytest.fixture
def nvml(monkeypatch) -> FakeNvml:
    return fake_nvml.install(monkeypatch, FakeNvml())


@pytest.fixture
def no_driver(monkeypatch) -> None:
    def fail():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)


def test_a_machine_without_a_driver_is_refused_in_one_sentence(no_driver):
    with pytest.raises(GpuError) as caught:
        gpu.require([0])
    assert "measures on GPU 0, but NVIDIA's driver finds no GPU on this machine" in str(
        caught.value
    )
    assert "\n" not in str(caught.value)


def test_a_cpu_server_asks_nothing_of_the_machine(no_driver):
    gpu.require([])
    assert gpu.describe([]) == {}
    assert GpuSampler([], []).sample() == []


def test_too_few_gpus_are_refused_with_their_number(nvml):
    gpu.require([0, 1])
    with pytest.raises(GpuError, match="GPUs 0, 2, but the number of GPUs on this machine is 2 "):
        gpu.require([0, 2])
    assert nvml.opened == 0


def test_numbers_count_among_the_gpus_that_a_job_was_given(nvml, monkeypatch):
    assert gpu.visible([1]) == [1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    assert gpu.visible([0]) == ["GPU-1"]
    assert gpu.cuda_environment([0])["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert [each["uuid"] for each in gpu.describe([0])["gpus"]] == ["GPU-1"]
    with pytest.raises(GpuError, match="number of GPUs in CUDA_VISIBLE_DEVICES='GPU-1' is 1:"):
        gpu.require([1])


def test_a_cpu_server_sees_no_gpu():
    assert gpu.cuda_environment([])["CUDA_VISIBLE_DEVICES"] == ""


def test_a_description_has_driver_and_gpus_and_leaves_out_what_is_not_told(nvml):
    told = gpu.describe([1])
    assert (told["driver"], told["cuda"], told["mps"]) == ("580.1", "13.0", False)
    (only,) = told["gpus"]
    assert (only["name"], only["uuid"], only["compute_capability"]) == ("Fake", "GPU-1", "9.0")
    assert only["memory_bytes"] == 16 * 2**30
    assert (only["persistence"], only["power_limit_watts"], only["mig"]) == (None, None, None)
    assert nvml.opened == 0


def test_the_instances_of_a_gpu_that_mig_splits_are_described(nvml, monkeypatch):
    nvml.values["nvmlDeviceGetMigMode"] = (1, 1)
    nvml.values["nvmlDeviceGetMaxMigDeviceCount"] = 7
    parts = {0: "MIG-a", 3: "MIG-b"}  # the other places have no MIG instance

    def part(_gpu, index):
        if index not in parts:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return parts[index]

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMigDeviceHandleByIndex", part)
    nvml.values["nvmlDeviceGetUUID"] = {0: "GPU-0", "MIG-a": "MIG-a", "MIG-b": "MIG-b"}
    (only,) = gpu.describe([0])["gpus"]
    assert [each["uuid"] for each in only["mig"]] == ["MIG-a", "MIG-b"]
    nvml.values["nvmlDeviceGetMigMode"] = (0, 1)  # MIG is enabled only after the next reset
    assert gpu.describe([0])["gpus"][0]["mig"] is None


def test_a_daemon_of_mps_is_noticed(nvml, monkeypatch):
    daemon = SimpleNamespace(info={"name": "nvidia-cuda-mps-control"})
    monkeypatch.setattr("psutil.process_iter", lambda _names: [daemon])
    assert gpu.describe([0])["mps"] is True
    with other_gpu_work([0], [], os.getpid()) as work:
        assert work is None  # the MPS server works for all processes


def test_a_sample_has_every_metric_of_every_gpu_and_energy_since_the_one_before(nvml):
    sampler = GpuSampler([0, 1], [])
    first = sampler.sample()
    assert not [row for row in first if row[1] == "gpu_energy_joules"]
    nvml.values["nvmlDeviceGetTotalEnergyConsumption"] = {0: 3500, 1: 4000}  # GPU 1 was reset
    second = {(number, metric): value for number, metric, value in sampler.sample()}
    assert second[0, "gpu_energy_joules"] == 2.5
    assert (1, "gpu_energy_joules") not in second
    assert {metric for number, metric in second if number == 0} == set(gpu.METRICS)
    assert second[0, "gpu_utilisation"] == 0.75
    assert second[1, "gpu_power_watts"] == 300
    assert second[0, "gpu_memory_used_bytes"] == 2**30
    assert (second[0, "gpu_sm_clock_mhz"], second[0, "gpu_memory_clock_mhz"]) == (1980, 3201)
    sampler.close()
    assert nvml.opened == 0


def test_what_a_gpu_does_not_tell_has_no_row(nvml):
    nvml.values = {"nvmlDeviceGetPowerUsage": 100_000}
    rows = GpuSampler([0], []).sample()
    assert {metric for _, metric, _ in rows} == {
        "gpu_power_watts",
        "gpu_sm_clock_mhz",
        "gpu_memory_clock_mhz",
    }


def test_the_counter_of_energy_is_read_before_the_power(nvml):
    asked: list[str] = []
    answer = nvml.answer
    nvml.answer = lambda question, *rest: (asked.append(question), answer(question, *rest))[1]
    GpuSampler([0], []).sample()
    energy = asked.index("nvmlDeviceGetTotalEnergyConsumption")
    assert energy < asked.index("nvmlDeviceGetPowerUsage")


def test_samples_are_taken_on_the_given_cores_and_the_thread_comes_back(nvml):
    before, seen = os.sched_getaffinity(0), []
    core = max(before)
    nvml.values["nvmlDeviceGetPowerUsage"] = 1
    answer = nvml.answer
    nvml.answer = lambda *all: (seen.append(os.sched_getaffinity(0)), answer(*all))[1]
    GpuSampler([0], [core]).sample()
    assert {core} in seen
    assert all(cores == {core} for cores in seen)
    assert os.sched_getaffinity(0) == before


def shares(nvml: FakeNvml, *samples, gpus=(0,), root=None) -> list[float | None]:
    """Return the share of other processes after each of these samples of NVML."""
    with other_gpu_work(gpus, [], os.getpid() if root is None else root) as work:
        assert work is not None
        found = []
        for nvml.values[PROCESSES] in samples:
            found.append(work.share(time.monotonic_ns()))
    assert nvml.opened == 0
    return found


def test_work_of_others_on_a_gpu_is_told_from_that_of_the_server_and_its_descendants(nvml):
    ours = process_sample(os.getpid(), 60)
    assert shares(nvml, [ours, process_sample(NOBODY, 40)]) == [0.4]
    assert shares(nvml, [ours, process_sample(NOBODY, 7), process_sample(NOBODY + 1, 8)]) == [
        pytest.approx(0.15)
    ]
    assert shares(nvml, [process_sample(os.getpid(), 90)]) == [0]
    with subprocess.Popen(["sleep", "60"]) as stub:
        assert shares(nvml, [process_sample(stub.pid, 90)]) == [0]
        stub.kill()


def test_a_descendant_that_has_ended_is_no_other_process(nvml):
    with other_gpu_work([0], [], os.getpid()) as work:
        with subprocess.Popen(["sleep", "60"]) as stub:
            nvml.values[PROCESSES] = [process_sample(stub.pid, 90)]
            assert work.share(time.monotonic_ns()) == 0
            stub.kill()
        assert work.share(time.monotonic_ns()) == 0


def test_of_several_gpus_the_one_counts_that_others_use_most(nvml):
    ours, theirs = process_sample(os.getpid(), 50), process_sample(NOBODY, 30)
    assert shares(nvml, {0: [ours], 1: [ours, theirs]}, gpus=(0, 1)) == [0.3]
    assert shares(nvml, {0: [ours], 1: [theirs]}, gpus=(0, 1)) == [0.3]


def test_what_others_did_is_not_known_where_nvml_does_not_tell(nvml):
    with other_gpu_work([0], [], os.getpid()) as work:
        assert work.share(time.monotonic_ns()) is None
    assert shares(nvml, []) == [None]


def test_ids_of_processes_that_are_never_the_servers_are_no_evidence(nvml):
    """In a container, NVML returns the process ids of the host.

    With the process ids of the host, the server itself would count as another process.
    """
    theirs = [process_sample(NOBODY, 90)]
    ours = [process_sample(os.getpid(), 90)]
    assert shares(nvml, theirs, ours + theirs, theirs) == [None, 0.9, 0.9]
    assert shares(nvml, ours + theirs, root=NOBODY + 1) == [None]
    with other_gpu_work([0], [], None) as work:
        assert work.share(time.monotonic_ns()) is None


def test_places_of_the_drivers_buffer_that_were_never_filled_are_no_work(nvml):
    ours = process_sample(os.getpid(), 90)
    unfilled = [
        process_sample(NOBODY, 2**31 - 16),
        SimpleNamespace(pid=NOBODY + 1, timeStamp=217144956601725, smUtil=40),
        process_sample(NOBODY + 2, 40, in_s=-60),  # before the window
    ]
    assert shares(nvml, [ours, *unfilled]) == [0]


def test_nvml_is_asked_of_the_time_since_the_start_of_the_window(nvml):
    asked = []
    answer = nvml.answer
    nvml.answer = lambda question, *rest: (asked.append((question, rest)), answer(question, *rest))[
        1
    ]
    with other_gpu_work([1], [], os.getpid()) as work:
        work.share(time.monotonic_ns() - 5 * 10**9)
    ((handle, since_us),) = (rest for question, rest in asked if question == PROCESSES)
    assert handle == 1
    assert since_us / 1e6 == pytest.approx(time.time() - 5, abs=1)


def test_a_cpu_server_has_no_gpu_that_others_could_use(no_driver):
    with other_gpu_work([], [], os.getpid()) as work:
        assert work is None
