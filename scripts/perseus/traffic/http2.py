"""Implement the HTTP/2 protocol for a gRPC client (RFC 9113). `http2_client` adds the socket.

The caller of this module passes in the bytes that the server sent, and gets two results: the
requests whose responses are complete, and the bytes to send to the server. Two features of HTTP/2
need hardly any work:

- Flow control: the client lets the server send 2 GiB, the largest window of HTTP/2. After each
  received GiB, the client extends the window.
- Header compression: the client uses no dynamic table, and does not let the server use one.
  Therefore, header fields never depend on earlier header fields.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Generic, TypeVar

from hpack import Decoder, Encoder, HPACKError

Buffer = bytes | memoryview

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE = range(6)
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(6, 10)
"""Types of HTTP/2 frames."""

ACK = END_STREAM = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20
"""Flags of HTTP/2 frames."""

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = range(
    1, 6
)
"""Numbers of HTTP/2 settings."""

NO_ERROR, REFUSED_STREAM, CANCEL = 0, 7, 8
"""Error codes of HTTP/2."""

MAX_31_BITS = 2**31 - 1  # largest flow-control window, and largest stream number
FRAME_BYTES, WINDOW_BYTES = 2**14, 2**16 - 1  # default frame size and window of the RFC
MAX_FRAME_BYTES = 2**24 - 1
TOLD_BYTES = 2**30  # received bytes after which the client extends the flow-control window again
AT_ONCE_BYTES = 2**20  # most bytes of request bodies that one call of `to_send` returns
MAX_REFUSALS = 3  # after so many refusals of a request, the client does not send it again
_FRAME = struct.Struct(">HBBBL")  # 24 bits of length, kind, flags, stream
_SETTING = struct.Struct(">HL")


class Http2Error(RuntimeError):
    """The bytes from the server are not valid HTTP/2."""


@dataclass(eq=False, slots=True)
class Stream:
    """A request and its response. In HTTP/2, each request has its own stream."""

    head: bytes
    """Encoded header fields of the request (a result of `header_block`)."""
    body: memoryview
    """Body of the request, never empty."""
    unsent: memoryview = field(init=False)
    number: int = 0
    """Number of the stream; 0 until the client sends the request."""
    window_bytes: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    """Header fields and trailers of the response."""
    parts: list[bytes] = field(default_factory=list)
    """Parts of the response body."""
    refusals: int = 0
    reset_code: int | None = None
    """Error code if the server reset the stream before the end of the response; otherwise None."""

    def __post_init__(self) -> None:
        self.unsent = self.body


def header_block(fields: Iterable[tuple[str, str]]) -> bytes:
    """Encode the header fields of a request, without a dynamic table."""
    return Encoder().encode([(name, value, True) for name, value in fields], huffman=False)


@lru_cache(256)  # most responses of one server have the same fields
def _fields(block: bytes) -> Mapping[str, str]:
    decoder = Decoder()
    decoder.max_allowed_table_size = decoder.header_table_size = 0
    try:
        return {str(name): str(value) for name, value in decoder.decode(block)}
    except (HPACKError, UnicodeDecodeError) as error:
        raise Http2Error(f"the server sent invalid header fields ({error})") from error


S = TypeVar("S", bound=Stream)


class Http2(Generic[S]):
    """The state of one HTTP/2 connection. Only one thread may use the object at a time."""

    def __init__(self) -> None:
        self.greeted = False
        """Whether the server has sent its settings, and therefore speaks HTTP/2."""
        self.leaving = ""
        """Reason why this connection accepts no new requests; empty if it accepts new requests."""
        self._waiting: deque[S] = deque()
        self._open: dict[int, S] = {}
        self._uploads: list[S] = []
        self._next = 1
        self._most_open = MAX_31_BITS
        self._refuses = False
        self._frame_bytes = FRAME_BYTES
        self._first_window_bytes = self._window_bytes = WINDOW_BYTES
        self._unread = b""
        self._block: tuple[int, int, bytes] | None = None
        self._received_bytes = 0
        self._ended: list[S] = []
        wanted = {HEADER_TABLE_SIZE: 0, ENABLE_PUSH: 0, INITIAL_WINDOW_SIZE: MAX_31_BITS}
        settings = b"".join(_SETTING.pack(*each) for each in wanted.items())
        self._to_say: list[Buffer] = [PREFACE, *_frame(SETTINGS, 0, 0, settings)]
        self._open_window(MAX_31_BITS - WINDOW_BYTES)

    # Sending

    def send(self, stream: S) -> None:
        """Queue a request. As soon as the server accepts one more request, `to_send` returns the
        bytes of this request."""
        self._waiting.append(stream)

    def end(self, stream: S) -> bool:
        """Cancel a request. Return False if the request had already ended, and True otherwise."""
        if self._open.get(stream.number) is stream:
            self._close(stream)
            self._reset(stream, CANCEL)
            return True
        if stream in self._waiting:
            self._waiting.remove(stream)
            return True
        return False

    def end_all(self) -> list[S]:
        """Remove all requests from this connection, and return them."""
        streams = [*self._ended, *self.calls()]
        self._open, self._uploads, self._ended = {}, [], []
        self._waiting.clear()
        return streams

    def calls(self) -> list[S]:
        """Return the requests in flight and the queued requests, in the order of sending."""
        return [*self._open.values(), *self._waiting]

    @property
    def is_busy(self) -> bool:
        """Return whether the connection waits for a response."""
        return bool(self._open)

    def to_send(self) -> list[Buffer]:
        """Return the bytes that the caller must send next; empty if there is nothing to send, or if
        the server accepts no bytes now."""
        if not (self._to_say or self._waiting or self._uploads):  # the usual case after a response
            return []
        parts, self._to_say = self._to_say, []
        if self._next > MAX_31_BITS:
            self.leaving = "no stream numbers are left"
        while self._waiting and self._has_room():
            stream = self._waiting.popleft()
            stream.number, self._next = self._next, self._next + 2
            stream.window_bytes = self._first_window_bytes
            self._open[stream.number] = stream
            self._uploads.append(stream)
            parts += _frame(HEADERS, END_HEADERS, stream.number, stream.head)
        left_bytes = min(AT_ONCE_BYTES, self._window_bytes)
        for stream in self._uploads.copy() if left_bytes > 0 else ():
            size = min(len(stream.unsent), stream.window_bytes, left_bytes)
            if size > 0:
                parts += self._upload(stream, size)
                left_bytes -= size
            if left_bytes == 0:
                break
        return parts

    def _has_room(self) -> bool:
        if self.leaving or (self._refuses and self._open):
            return False
        return len(self._open) < self._most_open

    def _upload(self, stream: S, size: int) -> list[Buffer]:
        """Return the next `size` bytes of the body of a request, divided into frames."""
        stream.window_bytes -= size
        self._window_bytes -= size
        parts: list[Buffer] = []
        body, stream.unsent = stream.unsent[:size], stream.unsent[size:]
        for start in range(0, size, self._frame_bytes):
            part = body[start : start + self._frame_bytes]
            is_last = start + len(part) == size and not stream.unsent
            parts += _frame(DATA, END_STREAM if is_last else 0, stream.number, part)
        if not stream.unsent:
            self._uploads.remove(stream)
        return parts

    def _reset(self, stream: S, code: int) -> None:
        self._to_say += _frame(RST_STREAM, 0, stream.number, code.to_bytes(4, "big"))

    def _close(self, stream: S) -> None:
        del self._open[stream.number]
        if stream.unsent:
            self._uploads.remove(stream)

    def _open_window(self, size: int) -> None:
        """Allow the server to send `size` more bytes on this connection."""
        self._to_say += _frame(WINDOW_UPDATE, 0, 0, size.to_bytes(4, "big"))

    # Receiving

    def receive(self, data: bytes) -> list[S]:
        """Process bytes from the server, and return the requests whose responses are now complete.
        Raises Http2Error if the bytes are not valid HTTP/2."""
        data = self._unread + data if self._unread else data
        start, end = 0, len(data)
        while end - start >= _FRAME.size:
            high, low, kind, flags, number = _FRAME.unpack_from(data, start)
            length = high << 8 | low
            if length > FRAME_BYTES:
                raise Http2Error(f"the server sent a frame of {length} bytes, which is too large")
            if end - start - _FRAME.size < length:
                break
            start += _FRAME.size + length
            self._receive_frame(kind, flags, number & MAX_31_BITS, data[start - length : start])
        self._unread = data[start:]
        ended, self._ended = self._ended, []
        return ended

    def _receive_frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._block is not None and kind != CONTINUATION:
            raise Http2Error("the server sent a header block without its continuation")
        if not self.greeted and kind != SETTINGS:
            raise Http2Error("the server began the connection without initial settings")
        if kind == DATA:
            self._data(flags, number, payload)
        elif kind == HEADERS:
            block = _unpadded(flags, payload)[5 if flags & WITH_PRIORITY else 0 :]
            self._headers(flags, flags, number, block)
        elif kind == CONTINUATION:
            if self._block is None or self._block[0] != number:
                raise Http2Error("the server sent a continuation without a header block")
            _, first_flags, block = self._block
            self._headers(flags, first_flags, number, block + payload)
        elif kind == WINDOW_UPDATE:
            self._window(number, _whole(payload) & MAX_31_BITS)
        elif kind == SETTINGS:
            self._settings(flags, payload)
        elif kind == PING:
            if not flags & ACK:
                self._to_say += _frame(PING, ACK, 0, payload)
        elif kind == RST_STREAM:
            if (stream := self._open.get(number)) is not None:
                self._was_reset(stream, _whole(payload))
        elif kind == GOAWAY:
            self._goaway(payload)
        elif kind == PUSH_PROMISE:
            raise Http2Error("the server sent an unexpected push")

    def _data(self, flags: int, number: int, payload: bytes) -> None:
        self._received_bytes += len(payload)
        if self._received_bytes >= TOLD_BYTES:
            self._open_window(self._received_bytes)
            self._received_bytes = 0
        if (stream := self._open.get(number)) is not None:
            stream.parts.append(_unpadded(flags, payload))
            if flags & END_STREAM:
                self._has_ended(stream)

    def _headers(self, flags: int, first_flags: int, number: int, block: bytes) -> None:
        if not flags & END_HEADERS:
            self._block = number, first_flags, block
            return
        self._block = None
        if (stream := self._open.get(number)) is not None:
            stream.fields |= _fields(block)
            if first_flags & END_STREAM:
                self._has_ended(stream)

    def _has_ended(self, stream: S) -> None:
        self._refuses = False
        self._close(stream)
        # The server may respond before it has received the whole request. Then the client need not
        # send the rest.
        if stream.unsent and stream.reset_code is None:
            self._reset(stream, NO_ERROR)
        self._ended.append(stream)

    def _was_reset(self, stream: S, code: int) -> None:
        """Handle a reset: the server ended a stream before the end of the response.

        If the code is REFUSED_STREAM, the server has not processed the request. Then the client
        sends the request again, at most MAX_REFUSALS times. Some servers refuse a request because
        they still count an ended stream as active. Therefore, after a refusal, the client sends no
        waiting request until one of the other requests in flight ends.
        """
        if code == REFUSED_STREAM and stream.refusals < MAX_REFUSALS:
            stream.refusals += 1
            self._refuses = True
            self._send_again(stream)
        else:
            stream.reset_code = code
            self._has_ended(stream)

    def _send_again(self, stream: S) -> None:
        """Put an open request back at the front of the queue, so that the client sends the whole
        request again."""
        self._close(stream)
        stream.number, stream.unsent = 0, stream.body
        self._waiting.appendleft(stream)

    def _window(self, number: int, size: int) -> None:
        if number == 0:
            self._window_bytes += size
        elif (stream := self._open.get(number)) is not None:
            stream.window_bytes += size

    def _settings(self, flags: int, payload: bytes) -> None:
        if flags & ACK:
            return
        if len(payload) % _SETTING.size:
            raise Http2Error("the server sent truncated settings")
        for name, value in _SETTING.iter_unpack(payload):
            if name == MAX_CONCURRENT_STREAMS:
                self._most_open = value
            elif name == MAX_FRAME_SIZE:
                if not FRAME_BYTES <= value <= MAX_FRAME_BYTES:
                    raise Http2Error(f"the server sent an invalid setting: frames of {value} bytes")
                self._frame_bytes = value
            elif name == INITIAL_WINDOW_SIZE:
                for stream in self._open.values():
                    stream.window_bytes += value - self._first_window_bytes
                self._first_window_bytes = value
        self.greeted = True
        self._to_say += _frame(SETTINGS, ACK, 0, b"")

    def _goaway(self, payload: bytes) -> None:
        """Handle a GOAWAY frame, in which the server announces the end of the connection.

        The frame states which requests the server does not process. The method puts these requests
        back into the queue, and the caller sends all queued requests over another connection.
        """
        last, code, debug_data = (
            _whole(payload[:4]) & MAX_31_BITS,
            _whole(payload[4:8]),
            payload[8:],
        )
        self.leaving = f"the server ends the connection (code {code} {debug_data[:200]!r})"
        for stream in [each for number, each in self._open.items() if number > last][::-1]:
            self._send_again(stream)


def _frame(kind: int, flags: int, number: int, payload: Buffer) -> tuple[Buffer, Buffer]:
    length = len(payload)
    return _FRAME.pack(length >> 8, length & 0xFF, kind, flags, number), payload


def _whole(payload: bytes) -> int:
    if len(payload) != 4:
        raise Http2Error("the server sent a truncated frame")
    return int.from_bytes(payload, "big")


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise Http2Error("the server sent a frame with more padding than payload")
    return payload[1 : len(payload) - payload[0]]
