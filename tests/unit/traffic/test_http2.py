"""Tests of HTTP/2 with a simulated server: the test passes the server's frames to the client."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from hpack import Decoder, Encoder

from perseus.traffic import http2
from perseus.traffic.http2 import Http2, Http2Error, Stream, header_block

ANSWER = [(":status", "200"), ("content-type", "application/grpc")]
END = [("grpc-status", "0")]


@dataclass(frozen=True)
class Frame:
    kind: int
    flags: int
    number: int
    payload: bytes


def frame(kind: int, flags: int = 0, number: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, number) + payload


def settings(**values: int) -> bytes:
    pairs = (struct.pack(">HI", getattr(http2, name), value) for name, value in values.items())
    return frame(http2.SETTINGS, payload=b"".join(pairs))


def window(size: int, number: int = 0) -> bytes:
    return frame(http2.WINDOW_UPDATE, 0, number, struct.pack(">I", size))


def head(number: int, fields=ANSWER, flags: int = http2.END_HEADERS) -> bytes:
    encoder = Encoder()
    encoder.header_table_size = 0
    return frame(http2.HEADERS, flags, number, encoder.encode(fields))


def answer(number: int, body: bytes = b"yes") -> bytes:
    trailers = head(number, END, http2.END_HEADERS | http2.END_STREAM)
    return head(number) + frame(http2.DATA, 0, number, body) + trailers


def frames(sent: list) -> list[Frame]:
    """Return the frames that the client sent after the preface."""
    data, found = b"".join(sent).removeprefix(http2.PREFACE), []
    while data:
        length = int.from_bytes(data[:3], "big")
        kind, flags, number = struct.unpack(">BBI", data[3:9])
        found.append(Frame(kind, flags, number, data[9 : 9 + length]))
        data = data[9 + length :]
    return found


def sent(connection: Http2, kind: int) -> list[Frame]:
    return [each for each in frames(connection.to_send()) if each.kind == kind]


def request(body: bytes = b"body") -> Stream:
    return Stream(header_block([(":method", "POST"), ("te", "trailers")]), memoryview(body))


def connected(**values: int) -> Http2:
    connection: Http2 = Http2()
    connection.to_send()
    connection.receive(settings(**values))
    connection.to_send()
    return connection


def with_requests(connection: Http2, *bodies: bytes) -> list[Stream]:
    streams = [request(body) for body in bodies]
    for each in streams:
        connection.send(each)
    return streams


# Sent frames


def test_a_connection_begins_with_the_preface_settings_and_the_largest_window():
    connection: Http2 = Http2()
    first = connection.to_send()
    assert b"".join(first).startswith(http2.PREFACE)
    told, opened = frames(first)
    assert (told.kind, told.flags, told.number) == (http2.SETTINGS, 0, 0)
    assert dict(struct.iter_unpack(">HI", told.payload)) == {
        http2.HEADER_TABLE_SIZE: 0,
        http2.ENABLE_PUSH: 0,
        http2.INITIAL_WINDOW_SIZE: 2**31 - 1,
    }
    assert (opened.kind, opened.number) == (http2.WINDOW_UPDATE, 0)
    assert int.from_bytes(opened.payload, "big") + 65_535 == 2**31 - 1
    assert connection.to_send() == []


def test_a_request_is_its_header_fields_and_its_body():
    connection = connected()
    with_requests(connection, b"one", b"two")
    seen = frames(connection.to_send())
    assert [each.number for each in seen if each.kind == http2.HEADERS] == [1, 3]
    first = [each for each in seen if each.number == 1]
    assert [each.kind for each in first] == [http2.HEADERS, http2.DATA]
    assert [each.flags for each in first] == [http2.END_HEADERS, http2.END_STREAM]
    assert Decoder().decode(first[0].payload) == [(":method", "POST"), ("te", "trailers")]
    assert [each.payload for each in seen if each.kind == http2.DATA] == [b"one", b"two"]


def test_no_table_remembers_header_fields():
    """A dynamic HPACK table would contain secrets, and the client could not send a block twice."""
    block = header_block([("authorization", "secret")])
    assert block == header_block([("authorization", "secret")])
    decoder = Decoder()
    decoder.decode(block)
    assert len(decoder.header_table.dynamic_entries) == 0


def test_a_body_goes_out_in_frames_as_the_windows_let_it():
    body = bytes(range(256)) * 400  # 102,400 bytes
    connection = connected()
    with_requests(connection, body)
    data = sent(connection, http2.DATA)
    assert [len(each.payload) for each in data] == [16_384] * 3 + [16_383]
    assert not any(each.flags for each in data)
    # this opens the flow-control window of the connection, but not the window of the stream
    connection.receive(window(20_000))
    assert connection.to_send() == []
    connection.receive(window(10_000, number=1))
    connection.receive(window(90_000, number=1))
    data += sent(connection, http2.DATA)
    connection.receive(window(2**20))
    data += sent(connection, http2.DATA)
    assert b"".join(each.payload for each in data) == body
    assert [each.flags for each in data] == [0] * (len(data) - 1) + [http2.END_STREAM]


def test_a_closed_window_of_one_stream_holds_no_other_up():
    connection = connected()
    connection.receive(window(2**20))
    with_requests(connection, bytes(70_000), b"small")
    seen = sent(connection, http2.DATA)
    assert [each.payload for each in seen if each.number == 3] == [b"small"]
    assert sum(len(each.payload) for each in seen if each.number == 1) == 65_535


def test_settings_change_the_windows_of_streams_that_are_open():
    connection = connected(INITIAL_WINDOW_SIZE=10)
    connection.receive(window(2**20))
    with_requests(connection, bytes(100))
    assert [len(each.payload) for each in sent(connection, http2.DATA)] == [10]
    connection.receive(settings(INITIAL_WINDOW_SIZE=4))  # less than the 10 bytes already sent
    assert sent(connection, http2.DATA) == []
    connection.receive(window(6, number=1))
    assert sent(connection, http2.DATA) == []
    connection.receive(settings(INITIAL_WINDOW_SIZE=30, MAX_FRAME_SIZE=20_000))
    assert [len(each.payload) for each in sent(connection, http2.DATA)] == [26]


def test_frames_are_as_large_as_the_server_takes_them():
    connection = connected(MAX_FRAME_SIZE=2**20, INITIAL_WINDOW_SIZE=2**20)
    connection.receive(window(2**20))
    with_requests(connection, bytes(600_000))
    assert [len(each.payload) for each in sent(connection, http2.DATA)] == [600_000]


def test_more_streams_than_the_server_takes_wait():
    connection = connected(MAX_CONCURRENT_STREAMS=2)
    streams = with_requests(connection, b"a", b"b", b"c")
    assert [each.payload for each in sent(connection, http2.DATA)] == [b"a", b"b"]
    assert connection.calls() == streams
    assert connection.receive(answer(3)) == [streams[1]]
    assert [(each.number, each.payload) for each in sent(connection, http2.DATA)] == [(5, b"c")]


# Received frames


@pytest.mark.parametrize("cut", [1, 2, 7, 9, 10, 1000])
def test_an_answer_is_read_however_it_is_cut(cut):
    connection = connected()
    first, second = with_requests(connection, b"a", b"b")
    connection.to_send()
    stream = answer(3, b"for b") + answer(1, b"for a")
    ended = []
    for start in range(0, len(stream), cut):
        ended += connection.receive(stream[start : start + cut])
    assert ended == [second, first]
    assert [b"".join(each.parts) for each in ended] == [b"for b", b"for a"]
    assert first.fields == dict(ANSWER + END) and first.reset_code is None
    assert not connection.is_busy


def test_header_fields_may_go_on_be_padded_and_have_a_priority():
    connection = connected()
    (stream,) = with_requests(connection, b"a")
    connection.to_send()
    block = head(1)[9:]
    flags = http2.PADDED | http2.WITH_PRIORITY
    connection.receive(
        frame(http2.HEADERS, flags, 1, b"\x03" + bytes(5) + block[:4] + bytes(3))
        + frame(http2.CONTINUATION, 0, 1, block[4:6])
        + frame(http2.CONTINUATION, http2.END_HEADERS, 1, block[6:])
        + frame(http2.DATA, http2.PADDED, 1, b"\x02yes" + bytes(2))
    )
    assert connection.receive(frame(http2.DATA, http2.END_STREAM, 1)) == [stream]
    assert (stream.fields, b"".join(stream.parts)) == (dict(ANSWER), b"yes")


def test_an_answer_may_be_trailers_alone():
    connection = connected()
    (stream,) = with_requests(connection, b"a")
    connection.to_send()
    only = [*ANSWER, ("grpc-status", "13"), ("grpc-message", "on%20fire")]
    end = http2.END_HEADERS | http2.END_STREAM
    assert connection.receive(head(1, only, end)) == [stream]
    assert stream.fields["grpc-status"] == "13"


def test_pings_and_settings_are_acknowledged():
    connection = connected()
    connection.receive(
        frame(http2.PING, payload=b"12345678")
        + frame(http2.PING, http2.ACK, payload=b"ignored!")
        + settings()
        + frame(http2.SETTINGS, http2.ACK)
        + frame(99, 0, 7, b"of a kind to come")
    )
    assert frames(connection.to_send()) == [
        Frame(http2.PING, http2.ACK, 0, b"12345678"),
        Frame(http2.SETTINGS, http2.ACK, 0, b""),
    ]


def test_the_server_s_window_is_opened_again(monkeypatch):
    monkeypatch.setattr(http2, "TOLD_BYTES", 100)
    connection = connected()
    with_requests(connection, b"a")
    connection.to_send()
    connection.receive(frame(http2.DATA, 0, 1, bytes(60)))
    assert connection.to_send() == []
    connection.receive(frame(http2.DATA, 0, 1, bytes(50)))
    assert frames(connection.to_send()) == [
        Frame(http2.WINDOW_UPDATE, 0, 0, (110).to_bytes(4, "big"))
    ]


# Early ends


def test_a_request_that_nobody_wants_any_more_is_reset():
    connection = connected(MAX_CONCURRENT_STREAMS=2)
    large, small, waiting = with_requests(connection, bytes(70_000), b"small", b"waiting")
    connection.to_send()
    assert connection.end(waiting) and connection.end(large) and connection.end(small)
    assert not any(connection.end(each) for each in (large, small, waiting))
    told = (http2.CANCEL).to_bytes(4, "big")
    assert frames(connection.to_send()) == [
        Frame(http2.RST_STREAM, 0, 1, told),
        Frame(http2.RST_STREAM, 0, 3, told),
    ]
    assert connection.receive(window(2**20) + answer(1)) == []
    assert connection.to_send() == []


def test_a_request_of_another_connection_ends_none_of_this():
    old, new = connected(), connected()
    (first,) = with_requests(old, b"a")
    (second,) = with_requests(new, b"b")
    old.to_send()
    new.to_send()
    assert not new.end(first)
    assert new.receive(answer(1)) == [second]


def test_an_answer_before_the_end_of_the_request_ends_it():
    connection = connected()
    (stream,) = with_requests(connection, bytes(70_000))
    connection.to_send()
    assert connection.receive(answer(1)) == [stream]
    assert sent(connection, http2.RST_STREAM) == [Frame(http2.RST_STREAM, 0, 1, bytes(4))]
    connection.receive(window(2**20))
    assert connection.to_send() == []


@pytest.mark.parametrize("body", [b"a", bytes(70_000)], ids=["sent", "in part"])
def test_a_server_may_reset_a_stream_which_is_not_reset_in_turn(body):
    connection = connected()
    (stream,) = with_requests(connection, body)
    connection.to_send()
    assert connection.receive(frame(http2.RST_STREAM, 0, 1, (2).to_bytes(4, "big"))) == [stream]
    assert stream.reset_code == 2
    connection.receive(window(2**20))
    assert connection.to_send() == []


def test_a_stream_that_the_server_refuses_is_sent_again_but_not_for_ever():
    connection = connected()
    (stream,) = with_requests(connection, b"a")
    for number in (1, 3, 5):
        assert [each.number for each in sent(connection, http2.DATA)] == [number]
        refused = frame(http2.RST_STREAM, 0, number, http2.REFUSED_STREAM.to_bytes(4, "big"))
        assert connection.receive(refused) == []
    assert [each.number for each in sent(connection, http2.DATA)] == [7]
    refused = frame(http2.RST_STREAM, 0, 7, http2.REFUSED_STREAM.to_bytes(4, "big"))
    assert connection.receive(refused) == [stream]
    assert stream.reset_code == http2.REFUSED_STREAM


def test_a_server_that_refuses_gets_no_more_until_it_has_answered():
    connection = connected()
    first, second, third = with_requests(connection, b"a", b"b", b"c")
    connection.to_send()
    refused = http2.REFUSED_STREAM.to_bytes(4, "big")
    connection.receive(frame(http2.RST_STREAM, 0, 3, refused))
    (fourth,) = with_requests(connection, b"d")
    assert connection.to_send() == []
    assert connection.receive(answer(5)) == [third]
    assert [each.payload for each in sent(connection, http2.DATA)] == [b"b", b"d"]
    assert connection.calls() == [first, second, fourth]


def test_a_server_that_leaves_answers_what_it_has_looked_at_and_the_rest_can_be_sent_again():
    old, new = connected(), connected(INITIAL_WINDOW_SIZE=2**20)
    first, second, large = with_requests(old, b"a", b"b", bytes(70_000))
    old.to_send()
    leaves = (1).to_bytes(4, "big") + (0).to_bytes(4, "big") + b"too old"
    assert old.receive(frame(http2.GOAWAY, payload=leaves)) == []
    assert "too old" in old.leaving and old.is_busy
    (last,) = with_requests(old, b"c")
    old.receive(window(2**20))
    assert old.to_send() == []
    assert old.receive(answer(1)) == [first]
    assert not old.is_busy
    new.receive(window(2**20))
    for each in (waiting := old.end_all()):
        new.send(each)
    assert waiting == [second, large, last]
    data = sent(new, http2.DATA)
    assert [each.payload for each in data if each.number in (1, 5)] == [b"b", b"c"]
    assert b"".join(each.payload for each in data if each.number == 3) == bytes(70_000)


def test_an_answer_before_a_frame_that_is_none_is_not_forgotten():
    connection = connected()
    streams = with_requests(connection, b"a", b"b")
    connection.to_send()
    with pytest.raises(Http2Error):
        connection.receive(answer(1) + frame(http2.PUSH_PROMISE, 0, 3))
    assert connection.end_all() == streams


def test_a_connection_whose_numbers_are_used_up_takes_no_more(monkeypatch):
    connection = connected()
    monkeypatch.setattr(http2, "MAX_31_BITS", 3)
    streams = with_requests(connection, b"a", b"b")
    assert len(sent(connection, http2.HEADERS)) == 2
    streams += with_requests(connection, b"c")
    assert connection.to_send() == [] and connection.leaving
    assert connection.calls() == streams


@pytest.mark.parametrize(
    ("received", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame of"),
        (b"\xff\xff\xff" + bytes(6), "a frame of 16777215 bytes"),
        (frame(http2.PING, payload=bytes(8)), "without initial settings"),
        (settings() + frame(http2.CONTINUATION, 0, 1), "a continuation without"),
        (settings() + head(1, flags=0) + frame(http2.DATA, 0, 1), "without its continuation"),
        (settings() + frame(http2.PUSH_PROMISE, 0, 1), "an unexpected push"),
        (settings() + frame(http2.WINDOW_UPDATE, 0, 0, b"1"), "a truncated frame"),
        (frame(http2.SETTINGS, payload=bytes(5)), "truncated settings"),
        (settings(MAX_FRAME_SIZE=0), "an invalid setting: frames of 0 bytes"),
        (settings(MAX_FRAME_SIZE=2**14 - 1), "frames of 16383 bytes"),
        (settings() + settings(MAX_FRAME_SIZE=2**24), "frames of 16777216 bytes"),
        (settings() + frame(http2.DATA, http2.PADDED, 1, b"\x09yes"), "more padding"),
        (
            settings() + frame(http2.HEADERS, http2.END_HEADERS, 1, b"\xff\xff\xff"),
            "invalid header fields",
        ),
    ],
)
def test_what_is_no_http2_is_said(received, message):
    connection: Http2 = Http2()
    with_requests(connection, b"a")
    connection.to_send()
    with pytest.raises(Http2Error, match=message):
        connection.receive(received)
