"""Tests that Perseus unloads the models of a remote server as far as the server allows."""

from types import SimpleNamespace

import pytest

from perseus.serving import model_control
from perseus.serving.access import PLAIN
from perseus.serving.failures import ServerError
from perseus.serving.model_control import Control
from perseus.serving.running_server import RunningServer


class Elsewhere(Control):
    """A server with loaded models that refuses to unload some of them."""

    def __init__(self, loaded, refuses):
        super().__init__(RunningServer("far:1", "far:2", "http://far:3/metrics", None, PLAIN))
        self.models, self.refuses = list(loaded), refuses

    def _call(self, method, *arguments, **more):
        if method == "unload_model":
            (name,) = arguments
            if name in self.refuses:
                raise ServerError("not now")
            self.models.remove(name)
        ready = [SimpleNamespace(name=name) for name in self.models]
        return SimpleNamespace(models=[], model_stats=ready)


@pytest.mark.parametrize("refuses", ["a", "b", "ab"])
def test_a_model_that_stays_keeps_no_other(refuses, monkeypatch):
    monkeypatch.setattr(model_control, "UNLOAD_S", 0.0)
    messages = []
    with Elsewhere("abc", refuses) as control:
        control.unload(list("abc"), messages.append)
        assert control.loaded() == list(refuses)
    names = ", ".join(refuses)
    assert messages == [
        f"{names} could not be unloaded: not now",
        f"still loaded on far:1: {names}. See docs/how-to/remote-servers.md",
    ]


def test_a_model_that_has_gone_is_not_said_to_be_there():
    messages = []
    with Elsewhere("b", "a") as control:
        control.unload(list("ab"), messages.append)
    assert messages == ["a could not be unloaded: not now"]


class Namespaced(Control):
    """A server with model namespaces, whose statistics contain one model only."""

    def __init__(self):
        """Open no connection."""

    def _call(self, method, *arguments, **more):
        if method == "get_model_repository_index":
            each = SimpleNamespace(name="a", state="READY", reason="")
            return SimpleNamespace(models=[each])
        if method == "is_model_ready":
            return arguments == ("a",)
        assert method == "get_inference_statistics"
        raise ServerError("INVALID_ARGUMENT: Request for unknown model: '/models::a' is not found")


def test_a_server_with_namespaces_tells_its_models_by_its_index():
    assert Namespaced().loaded() == ["a"]
    assert Namespaced().states("a") == {"a": "READY"}
    assert Namespaced().states("b") == {"a": "READY"}
