"""Tests of headers and TLS: secrets go only to their server, and certificates are checked."""

import http.server
import pickle
import ssl
import threading
from concurrent import futures
from contextlib import contextmanager

import grpc
import pytest
from certificate_files import make_certificate
from tritonclient.grpc import service_pb2, service_pb2_grpc

from perseus.serving.access import HIDDEN, MAX_BYTES, Access, Header, read_access
from perseus.serving.failures import ServerError
from perseus.serving.open_inference import server_metadata
from perseus.serving.running_server import RunningServer
from perseus.study.remote import Remote

SECRET = "s3cret-t0ken"
TOKEN = {"name": "authorization", "env": "TRITON_TOKEN", "prefix": "Bearer "}
WITH_TOKEN = Access(headers=(Header("authorization", "Bearer ", SECRET),))


def remote(*headers):
    return Remote(host="127.0.0.1", headers=headers)


def test_a_token_is_read_from_its_variable():
    found = read_access(remote(TOKEN), {"TRITON_TOKEN": SECRET})
    assert found.values() == {"authorization": f"Bearer {SECRET}"}
    assert pickle.loads(pickle.dumps(found)) == found  # client processes receive a pickled copy


def test_no_repr_and_no_message_shows_a_token():
    server = RunningServer("a:1", "a:2", "http://a:3/metrics", None, WITH_TOKEN)
    assert SECRET not in repr(server) + repr(WITH_TOKEN) + str(WITH_TOKEN.headers)
    assert WITH_TOKEN.hide(f"denied: Bearer {SECRET}") == f"denied: Bearer {HIDDEN}"


def test_what_is_too_short_for_a_secret_garbles_no_message():
    access = Access(headers=(Header("authorization", "", "a"), Header("key", "", "four")))
    assert access.hide("a fatal error of four") == f"a fatal error of {HIDDEN}"


def test_every_variable_that_is_missing_or_cannot_be_sent_is_named():
    other = TOKEN | {"name": "x-team", "env": "TEAM", "prefix": ""}
    with pytest.raises(ServerError) as caught:
        read_access(remote(TOKEN, other), {"TEAM": f"{SECRET}\nx: y"})
    text = str(caught.value)
    assert "TRITON_TOKEN, which is not set: export TRITON_TOKEN=..." in text
    assert "TEAM contains a character that no header may contain" in text and SECRET not in text


def test_a_server_with_tls_never_gets_a_token_without_it():
    access = Access("certificates", WITH_TOKEN.headers)
    assert access.values("http") == {} and access.values("https") == access.values() != {}


@pytest.mark.parametrize("host", ["gpu..example.com", f"{'a' * 64}.com", "[10.0.0.1:8001]"])
def test_an_address_that_cannot_exist_is_told(host):
    server = RunningServer(f"{host}:1", f"{host}:2", f"http://{host}:3/", None, protocol="http")
    with pytest.raises(ServerError, match=r":2/v2: no HTTP response"):
        server_metadata(server)


# Over a real connection


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("ours"))


@pytest.mark.parametrize("comment", ["# Tanúsítvány\n".encode(), "# Zürich\n".encode("latin-1")])
def test_comments_of_a_bundle_need_not_be_ascii(comment, certificate, tmp_path, monkeypatch):
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(comment + certificate[1].read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    for tls in (str(bundle), "system"):
        access = read_access(Remote(host="127.0.0.1", tls=tls), {})
        assert access.ssl_context().cert_store_stats()["x509_ca"] == 1


def test_a_system_without_certificates_is_told_so(tmp_path, monkeypatch):
    (tmp_path / "bundle.pem").write_text("# čekáme")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "bundle.pem"))
    with pytest.raises(ServerError, match=r"tls: system cannot be used: .*certificate"):
        read_access(Remote(host="127.0.0.1", tls="system"), {})
    (tmp_path / "other.pem").touch()
    (tmp_path / "bundle.pem").write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with pytest.raises(ServerError, match=r"this system has no certificates"):
        read_access(Remote(host="127.0.0.1", tls="system"), {})


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Return an authority, in PEM format, that has not signed `certificate`."""
    return make_certificate(tmp_path_factory.mktemp("theirs"))[1].read_text()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(dict(self.headers))
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "/")
            self.end_headers()
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "8")
            self.end_headers()
            self.wfile.write(b"1234")
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            for _ in range(MAX_BYTES // 2**20 + 2):
                self.wfile.write(bytes(2**20))
        elif self.headers["authorization"] == f"Bearer {SECRET}":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")
        else:
            self.send_error(401, f"no such token: {self.headers['authorization']}")

    def log_message(self, *args):
        """Suppress the log of the server."""


@pytest.fixture
def site(request, certificate):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.seen = []
    if getattr(request, "param", "http") == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate[1], certificate[0])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_page_is_got_with_its_headers(site):
    assert WITH_TOKEN.get(f"http://127.0.0.1:{site.server_port}/", 5) == b"{}"


def test_a_refusal_is_told_without_the_token_that_it_repeats(site):
    wrong = Access(headers=(Header("authorization", "", SECRET),))
    with pytest.raises(OSError, match="HTTP 401") as caught:
        wrong.get(f"http://127.0.0.1:{site.server_port}/", 5)
    assert SECRET not in str(caught.value)


def test_an_answer_that_is_cut_off_is_none(site):
    with pytest.raises(OSError, match="ended after 4 of 8 bytes"):
        WITH_TOKEN.get(f"http://127.0.0.1:{site.server_port}/cut", 5)


def test_no_redirect_is_followed(site):
    with pytest.raises(OSError, match="HTTP 302"):
        WITH_TOKEN.get(f"http://127.0.0.1:{site.server_port}/elsewhere", 5)
    assert len(site.seen) == 1


def test_an_answer_has_an_end(site):
    with pytest.raises(OSError, match="the response has more than"):
        WITH_TOKEN.get(f"http://127.0.0.1:{site.server_port}/endless", 5)


@pytest.mark.parametrize("site", ["https"], indirect=True)
def test_https_needs_a_certificate_that_is_trusted(site, certificate, stranger):
    url = f"https://127.0.0.1:{site.server_port}/"
    trusting = Access(certificate[1].read_text(), WITH_TOKEN.headers)
    assert trusting.get(url, 5) == b"{}"
    with pytest.raises(OSError, match="certificate verify failed"):
        Access(stranger, WITH_TOKEN.headers).get(url, 5)
    assert len(site.seen) == 1


class Triton(service_pb2_grpc.GRPCInferenceServiceServicer):
    def ServerMetadata(self, request, context):  # noqa: N802 - a name of Triton's
        if dict(context.invocation_metadata()).get("authorization") != f"Bearer {SECRET}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")
        return service_pb2.ServerMetadataResponse(name="triton", version=f"9 {SECRET}")


@contextmanager
def serving(certificate):
    """Yield the address of a gRPC server that requires TLS and the token."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Triton(), server)
    key, pem = (path.read_bytes() for path in certificate)
    credentials = grpc.ssl_server_credentials([(key, pem)])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(0)


@pytest.fixture
def triton(certificate):
    with serving(certificate) as address:
        yield address


def described(address, access):
    about = server_metadata(RunningServer(address, address, "", None, access))
    return access.hide(f"{about.name} {about.version} at {address}")


def test_grpc_over_tls_with_a_token(triton, certificate):
    access = Access(certificate[1].read_text(), WITH_TOKEN.headers)
    assert described(triton, access) == f"triton 9 {HIDDEN} at {triton}"


@pytest.mark.parametrize("host", ["IP:127.0.0.2", "DNS:triton.example.org"])
def test_a_certificate_of_another_host_is_explained(host, tmp_path):
    certificate = make_certificate(tmp_path, host)
    with (
        serving(certificate) as address,
        pytest.raises(ServerError, match="or the certificate belongs to another host") as caught,
    ):
        described(address, Access(certificate[1].read_text(), WITH_TOKEN.headers))
    assert SECRET not in str(caught.value)


def test_a_missing_token_missing_tls_and_a_foreign_certificate_are_explained(
    triton, certificate, stranger
):
    ours = certificate[1].read_text()
    for access, hint in (
        (
            Access(ours),
            "add a header to the key `headers`, with the name of the environment variable that"
            " contains the token",
        ),
        (Access(), "does the server require TLS"),
        (Access(stranger, WITH_TOKEN.headers), "set `tls` to the PEM file of the right authority"),
    ):
        with pytest.raises(ServerError) as caught:
            described(triton, access)
        assert hint in str(caught.value) and SECRET not in str(caught.value)
