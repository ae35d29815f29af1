"""Tests of a remote server in the configuration: addresses, and mistakes with their place."""

import pytest
from unit.study.test_read import cells, load, model, problems, scenario

from perseus.study import planning, slots


def remote(**more):
    return {
        "name": "far",
        "launcher": "remote",
        "remote": {"host": "triton.example.org"} | more,
        "cores": 4,
        "price": {"instance": "n1-standard-4", "region": "us-central1"},
    }


def study_on(*servers):
    names = [server["name"] for server in servers]
    return {
        "models": [model()],
        "servers": list(servers),
        "scenarios": [scenario("squeezenet1_1", name="squeezenet1_1", servers=names)],
    }


TOKEN = {"name": "authorization", "env": "TRITON_TOKEN", "prefix": "Bearer "}


def test_a_host_is_enough():
    (server,) = load(study_on(remote())).servers.values()
    assert server.remote.grpc == "triton.example.org:8001"
    assert server.remote.http == "triton.example.org:8000"
    assert server.remote.metrics == "http://triton.example.org:8002/metrics"
    assert (server.remote.tls, server.remote.other_models) == ("none", "refuse")


def test_a_host_may_have_underscores_as_containers_have():
    metrics = "http://triton_1:9002/metrics"
    (server,) = load(study_on(remote(host="my_triton", metrics=metrics))).servers.values()
    assert server.remote is not None
    assert (server.remote.grpc, server.remote.http) == ("my_triton:8001", "my_triton:8000")
    assert server.remote.metrics == metrics


def test_an_ipv6_host_has_brackets_before_its_port():
    (server,) = load(study_on(remote(host="fd00::1"))).servers.values()
    assert server.remote.grpc == "[fd00::1]:8001"
    assert server.remote.metrics == "http://[fd00::1]:8002/metrics"


def test_where_and_how_a_server_is_reached_is_in_the_task_of_its_cells_but_no_secret(monkeypatch):
    monkeypatch.setenv("TRITON_TOKEN", "s3cret")
    study = load(study_on(remote(tls="system", headers=[TOKEN])))
    (cell,) = cells(study)
    task = planning.measure_task(study, cell)
    assert task.plain()["server"]["remote"]["headers"] == [TOKEN]
    assert "s3cret" not in repr(task)


def test_each_host_has_a_slot_and_its_client_cores_are_its_threads():
    other = remote(host="10.0.0.7", client_cores=2) | {"name": "other"}
    same = remote(grpc="triton.example.org:9001") | {"name": "same"}
    local = {
        "name": "here",
        "cores": 1,
        "price": {"instance": "n1-standard-1", "region": "us-central1"},
    }
    study = load(study_on(remote(), other, same, local))
    found = {
        cell.scenario.server.name: (slots.slot(cell), slots.threads(cell)) for cell in cells(study)
    }
    assert found == {
        "far": ("remote_triton_example_org", 1),
        "same": ("remote_triton_example_org", 1),
        "other": ("remote_10_0_0_7", 2),
        "here": ("local_server", slots.ALL_THREADS),
    }
    assert slots.slots(study) == ["local_server", "remote_10_0_0_7", "remote_triton_example_org"]


@pytest.mark.parametrize(
    ("hosts", "slot"),
    [
        (("localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "::1", "0::1"), "remote_localhost"),
        (("triton.example.org", "Triton.Example.org."), "remote_triton_example_org"),
        (("fd00::1", "FD00:0::1"), "remote_fd00__1"),
    ],
)
def test_a_host_has_one_slot_however_it_is_written(hosts, slot):
    servers = [remote(host=host) | {"name": f"s{i}"} for i, host in enumerate(hosts)]
    assert slots.slots(load(study_on(*servers))) == ["local_server", slot]


def test_the_gpus_of_a_remote_server_are_its_own():
    price = {**remote()["price"], "accelerator": "T4:2"}
    study = load(study_on(remote() | {"device": "gpu", "gpus": [2, 3], "price": price}))
    (cell,) = cells(study)
    (tenant,) = planning.repository_task(study, cell.scenario.id).tenants
    assert tenant.gpus == (2, 3)
    assert planning.measure_task(study, cell).server.gpus == ()


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({k: v for k, v in remote().items() if k != "remote"}, "servers[0].remote: is missing"),
        (
            remote() | {"launcher": "embedded"},
            "applies only to `launcher: remote`, but `launcher` is",
        ),
        (remote(host="a/../b"), "servers[0].remote.host: 'a/../b' is not valid here"),
        (remote(host="-oProxyCommand=x"), "is not valid here"),
        (remote(host="one\n"), "is not valid here"),
        (remote(host="a..b"), "remote.host: 'a..b' is not a valid address"),
        (remote(host="...."), "remote.host: '....' is not a valid address"),
        (remote(host=":::"), "remote.host: '[:::]' is not a valid address"),
        (remote(host="a" * 70), "remote.host: 'aaa"),
        (remote(grpc="a..b:80"), "remote.grpc: 'a..b:80' is not a valid address"),
        (remote(http="[1:2]:80"), "remote.http: '[1:2]:80' is not a valid address"),
        (
            remote(grpc="a:65536"),
            "remote.grpc: 'a:65536' is not a valid address (each part of a host",
        ),
        (remote(grpc="a:0"), "remote.grpc: 'a:0' is not a valid address"),
        (
            remote(metrics="http://a:70000/metrics"),
            "remote.metrics: 'http://a:70000/metrics' is no",
        ),
        (remote(grpc="triton.example.org"), "is not valid here (use host:port)"),
        (
            remote(host="https://triton.example.org:8000/v2"),
            "remote.host: 'https://triton.example.org:8000/v2' has a URL scheme (write"
            " 'triton.example.org', and set `tls:` for TLS)",
        ),
        (
            remote(grpc="dns:///triton:8001"),
            "remote.grpc: 'dns:///triton:8001' has a URL scheme (write 'triton:8001', and"
            " set `tls:` for TLS)",
        ),
        (
            remote(grpc="grpc://triton:8001"),
            "remote.grpc: 'grpc://triton:8001' has a URL scheme (write 'triton:8001', and"
            " set `tls:` for TLS)",
        ),
        (remote(host="triton:8001"), "'triton:8001' is not valid here (use a name or an IP"),
        (
            remote(metrics="file:///etc/passwd"),
            "metrics: 'file:///etc/passwd' is not the URL of a metrics page (use"
            " http://host:port/path)",
        ),
        (remote(tls="missing.pem"), "remote.tls: there is no file 'missing.pem'"),
        (remote(tls="config/prices.csv"), "the file contains no certificates in PEM format"),
        (remote(tls="/dev/null"), "the file contains no certificates in PEM format"),
        (remote(tls="system", headers=[TOKEN, TOKEN]), "'authorization' is listed twice"),
        (
            remote(tls="system", headers=[TOKEN | {"name": "grpc-timeout"}]),
            "headers[0].name: the client itself sets 'grpc-timeout'",
        ),
        (
            remote(tls="system", headers=[TOKEN | {"prefix": "a\r\nb: c"}]),
            "headers[0].prefix: 'a\\r\\nb: c' is not valid here",
        ),
        (remote(tls="system", headers=[TOKEN | {"env": "A B"}]), "headers[0].env: 'A B' is not"),
        (remote(headers=[TOKEN]), "send the secret headers to 'triton.example.org' (`host:`)"),
        (
            remote(host="127.0.0.1", http="10.0.0.7:80", headers=[TOKEN]),
            "send the secret headers to '10.0.0.7' (`http:`)",
        ),
        (
            remote() | {"image": "nvcr.io/nvidia/tritonserver:24.10-py3"},
            "servers[0].image: applies only to the launchers",
        ),
    ],
)
def test_a_remote_server_that_cannot_be_is_explained(server, expected):
    assert any(expected in problem for problem in problems(study_on(server)))


def test_a_token_may_go_without_tls_to_the_end_of_a_tunnel():
    load(study_on(remote(host="127.0.0.1", headers=[TOKEN])))


def test_no_page_cache_is_emptied_elsewhere():
    asked = {"kind": "startup", "page_cache": ["warm"]}
    item = scenario("squeezenet1_1", name="x", servers=["far"], experiments=[asked])
    study = study_on(remote()) | {"scenarios": [item]}
    load(study)
    asked["page_cache"].append("cold")
    assert problems(study) == (
        "scenarios[0].experiments[0].page_cache: server 'far' is remote, and Perseus cannot remove"
        " files from its page cache (remove `cold`)",
    )


def test_shared_memory_and_priorities_are_of_servers_that_are_started_here():
    study = study_on(remote())
    study["scenarios"][0]["tenants"][0]["priority"] = 1
    study["measurement"] = {"client": {"shared_memory": True}}
    text = "\n".join(problems(study))
    assert "(launcher 'remote') is not on this host, or cannot access the shared memory" in text
    assert "tenants[0].priority: server 'far' is remote" in text
