"""Check the section `track`: the address of the MLflow tracking store."""

from __future__ import annotations

from urllib.parse import urlsplit

from perseus.study.definition import Definition
from perseus.study.problems import Problems


def problems(study: Definition) -> Problems:
    """Yield a problem if the URI is not an address of a tracking store, or if the URI contains a
    user name or a password."""
    uri = study.track.mlflow
    if uri is None:
        return
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        yield ("track", "mlflow"), f"{uri!r} is no URI: {error}"
        return
    is_server = parts.scheme in ("http", "https") and bool(parts.hostname)
    is_file = parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1
    if parts.username or parts.password:
        names = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        text = f"contains a user name or password (remove both, and set {names} in the environment)"
        yield ("track", "mlflow"), text
    elif not (is_server or is_file):
        yield ("track", "mlflow"), f"{uri!r} is neither http://HOST:PORT nor sqlite:///FILE"
