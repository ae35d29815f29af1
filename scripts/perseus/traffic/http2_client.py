"""Send requests from any thread over HTTP/2, and call a function when a request ends. The client
has one connection at a time.

The thread that calls `send` writes the request to the socket itself, so that the request leaves at
once. The client also has its own thread, with these tasks:

- write the bytes that the socket did not accept at once,
- read responses, and call the callback functions of the requests,
- end requests without a response after their deadline,
- connect again after a lost connection.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Self

from perseus.traffic.http2 import Buffer, Http2, Http2Error, Stream

CONNECT_S: Final = 5.0
AGAIN_S: Final = 0.1  # time between two attempts to connect
REFUSE_S: Final = 0.005  # without a connection, time between two refusals of all new requests
LOOK_S: Final = 0.02  # time between two checks for requests after their deadline
IDLE_S: Final = 0.2  # time between two checks without requests in flight
READ_BYTES: Final = 2**16
MAX_BUFFERS: Final = 1000  # largest number of buffers that the system accepts in one call
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class End(Enum):
    """How a request ended.

    ANSWERED: the server sent a response, or reset the stream. LATE: the deadline passed without a
    response. LOST: the client had no connection. CANCELLED: the caller cancelled the request.
    """

    ANSWERED = auto()
    LATE = auto()
    LOST = auto()
    CANCELLED = auto()


def _nobody(call: Call, done_ns: int, how: End, why: str) -> None:
    """Do nothing when a request ends."""


@dataclass(eq=False, slots=True)
class Call(Stream):
    """A request with a deadline and a callback function."""

    deadline_s: float = 0.0
    """Deadline on the monotonic clock, in seconds."""
    ended: Callable[[Call, int, End, str], None] = _nobody
    """Callback function, which the client calls once, when the request ends.

    The arguments are the request, the time in ns of the monotonic clock, how the request ended, and
    the reason. The reason is empty for the ends ANSWERED and CANCELLED. The function runs in the
    client's thread, or in the thread that cancels the request.
    """


class Http2Client:
    """An HTTP/2 client; a context manager. When the context begins, the client connects to the
    server, and raises OSError or Http2Error if it cannot connect."""

    def __init__(self, address: str, tls: ssl.SSLContext | None) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port, self._tls = host.strip("[]"), int(port), tls
        self._lock = threading.Lock()
        self._http2: Http2[Call] = Http2()
        self._unwritten: list[Buffer] = []
        self._socket: socket.socket | None = None
        self._closing = False
        self._lost = ""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._socket, self._http2 = self._connected()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._closing = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)

    def send(self, call: Call) -> None:
        """Send a request, and do not wait for its response."""
        with self._lock:
            self._http2.send(call)
            self._write_first()

    def cancel(self, call: Call) -> None:
        self._end(call, End.CANCELLED, "")

    def _end(self, call: Call, how: End, why: str) -> None:
        with self._lock:
            is_open = self._http2.end(call)
            self._write_first()
        if is_open:
            call.ended(call, time.monotonic_ns(), how, why)

    def _connected(self) -> tuple[socket.socket, Http2[Call]]:
        """Connect to the server, and return the connection after the server has confirmed HTTP/2.
        Raises OSError or Http2Error if the server cannot be reached or does not speak HTTP/2."""
        connected = socket.create_connection((self._host, self._port), CONNECT_S)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connected = self._tls.wrap_socket(connected, server_hostname=self._host)
            http2: Http2[Call] = Http2()
            connected.sendall(b"".join(http2.to_send()))
            while not http2.greeted:
                if not (data := connected.recv(READ_BYTES)):
                    raise Http2Error("the server does not speak HTTP/2")
                http2.receive(data)
            connected.setblocking(False)
        except BaseException:
            connected.close()
            raise
        return connected, http2

    def _write_first(self) -> None:
        """Write the queued bytes in this thread. If the client's thread still has earlier bytes to
        write, leave all bytes to the client's thread. The caller must hold the lock."""
        if not self._unwritten:
            self._write()
            if self._unwritten:
                os.eventfd_write(self._wake, 1)

    def _write(self) -> None:
        """Write as many bytes as the server and the system accept. The caller must hold the
        lock."""
        to = self._socket
        while to is not None and (self._unwritten or self._more()):
            try:
                if isinstance(to, ssl.SSLSocket):
                    self._unwritten = [b"".join(self._unwritten)]
                    written = to.send(self._unwritten[0])
                else:
                    written = to.sendmsg(self._unwritten[:MAX_BUFFERS])
            except OSError:  # the socket is full, or the connection is lost, which a read detects
                return
            self._unwritten = _after(self._unwritten, written)

    def _more(self) -> bool:
        self._unwritten = self._http2.to_send()
        return bool(self._unwritten)

    # Functions of the client's thread

    def _run(self) -> None:
        while not self._closing:
            try:
                if self._socket is None:
                    self._connect_again()
                if not self._serve():
                    time.sleep(AGAIN_S)
                self._send_again(self._disconnect())
            except (OSError, Http2Error) as error:
                self._lost = self._http2.leaving or str(error)
                again_s = time.monotonic() + AGAIN_S
                self._refuse()
                while time.monotonic() < again_s and not self._closing:
                    time.sleep(REFUSE_S)
                    self._refuse()
        self._tell(self._disconnect(), End.CANCELLED, "")

    def _refuse(self) -> None:
        """Close the connection, and end all requests as lost (`End.LOST`)."""
        self._tell(self._disconnect(), End.LOST, self._lost)

    def _connect_again(self) -> None:
        """Connect again after the end of a connection.

        If the server announced the end of the old connection, all requests that have not ended wait
        for the new connection. If the old connection was lost, no request waits. Until the client
        has a new connection, it ends each request at once (`End.LOST`). The attempt to connect may
        take seconds, because a port may accept connections although no server responds.
        """
        with ThreadPoolExecutor(1) as pool:
            attempt = pool.submit(self._connected)
            while self._lost and not wait([attempt], REFUSE_S).done:
                self._refuse()
            connected, http2 = attempt.result()
        self._lost = ""
        self._end_late(time.monotonic())
        with self._lock:
            waiting = self._http2.end_all()
            self._socket, self._http2 = connected, http2
        self._send_again(waiting)

    def _serve(self) -> bool:
        """Write requests and read responses until the connection is no longer necessary. Return
        whether the server responded to any request.

        The connection is no longer necessary in two cases: the client's context has ended, or the
        server announced the end of the connection and no request is in flight. Raises OSError or
        Http2Error if the connection is lost.
        """
        connected, answers = self._socket, 0
        assert connected is not None
        poll, wanted = select.poll(), select.POLLIN
        poll.register(connected, wanted)
        poll.register(self._wake, select.POLLIN)
        with self._lock:
            self._write()
        # Only this thread reads from the connection, so a read needs no lock. With TLS, a read
        # needs the lock, since TLS cannot read during a write.
        alone = self._lock if self._tls else nullcontext()
        look_s = 0.0
        while not self._closing and not (self._http2.leaving and not self._http2.is_busy):
            now_s = time.monotonic()
            if now_s >= look_s:
                self._end_late(now_s)
                look_s = now_s + LOOK_S
            asked = select.POLLIN | (select.POLLOUT if self._unwritten else 0)
            if asked != wanted:
                poll.modify(connected, asked)
                wanted = asked
            for descriptor, _ in poll.poll(1000 * (LOOK_S if self._http2.is_busy else IDLE_S)):
                if descriptor == self._wake:
                    os.eventfd_read(self._wake)
            with alone:
                data = _read(connected)
            now_ns = time.monotonic_ns()
            with self._lock:
                answered = self._http2.receive(data) if data else []
                self._write()
            for call in answered:
                call.ended(call, now_ns, End.ANSWERED, "")
            answers += len(answered)
        return answers > 0

    def _end_late(self, now_s: float) -> None:
        with self._lock:
            late = [call for call in self._http2.calls() if call.deadline_s <= now_s]
        for call in late:
            self._end(call, End.LATE, "no response in time")

    def _disconnect(self) -> list[Call]:
        """Close the connection, and return all requests that have not ended. If a thread sends a
        request after this call, the request waits for the next connection."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            calls = self._http2.end_all()
            self._socket, self._http2, self._unwritten = None, Http2(), []
        return calls

    def _send_again(self, calls: Iterable[Call]) -> None:
        for call in calls:
            self.send(call)

    @staticmethod
    def _tell(calls: Iterable[Call], how: End, why: str) -> None:
        for call in calls:
            call.ended(call, time.monotonic_ns(), how, why)


def _read(connected: socket.socket) -> bytes:
    """Return the bytes that have arrived, possibly none. Raises OSError if the server has closed
    the connection."""
    try:
        data = connected.recv(READ_BYTES)
    except _NOT_NOW:
        return b""
    if not data:
        raise ConnectionResetError("the server has closed the connection")
    return data


def _after(buffers: Sequence[Buffer], written: int) -> list[Buffer]:
    """Return the buffers without their first `written` bytes."""
    for i, each in enumerate(buffers):
        if written < len(each):
            return [memoryview(each)[written:], *buffers[i + 1 :]]
        written -= len(each)
    return []
