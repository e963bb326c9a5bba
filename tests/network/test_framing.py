from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.network.framing import AT_FIRST, FrameError, Framer


def _frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big", signed=True) + body


def _deliver(framer: Framer, data: bytes | memoryview) -> int:
    """Hand over as much as the framer takes at once, as a socket would."""
    room = framer.receive_into()
    count = min(len(room), len(data))
    room[:count] = data[:count]
    framer.received(count)
    return count


@given(st.lists(st.binary(max_size=300), max_size=20), st.data())
def test_frames_come_out_whole_and_in_order_however_the_bytes_arrive(
    bodies: list[bytes], data: st.DataObject
) -> None:
    scratch = memoryview(bytearray(64))
    framer = Framer(scratch, max_frame=1000)
    stream = b"".join(map(_frame, bodies))
    seen: list[bytes] = []
    while stream:
        chunk = stream[: data.draw(st.integers(1, 64))]
        taken = _deliver(framer, chunk)
        stream = stream[taken:]
        while (frame := framer.next_frame()) is not None:
            seen.append(bytes(frame))
        scratch[:] = bytes(64)  # another connection uses the shared buffer
    assert seen == bodies


@given(st.lists(st.binary(max_size=20), min_size=2, max_size=5))
def test_frames_kept_while_a_request_waits_survive_the_shared_buffer(bodies: list[bytes]) -> None:
    scratch = memoryview(bytearray(1024))
    framer = Framer(scratch, max_frame=1000)
    _deliver(framer, b"".join(map(_frame, bodies)))
    seen = []
    for _ in bodies:
        frame = framer.next_frame()
        assert frame is not None
        seen.append(bytes(frame))
        framer.keep()
        scratch[:] = bytes(1024)
    assert seen == bodies


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_absurd_lengths_are_refused_before_anything_is_allocated(size: int) -> None:
    framer = Framer(memoryview(bytearray(64)), max_frame=1000)
    _deliver(framer, size.to_bytes(4, "big", signed=True))
    with pytest.raises(FrameError):
        framer.next_frame()


def test_frames_can_be_patched_in_place() -> None:
    framer = Framer(memoryview(bytearray(64)), max_frame=1000)
    for piece in (b"\0\0", b"\0\3abc"):
        _deliver(framer, piece)
        frame = framer.next_frame()
    assert frame is not None
    frame[0] = ord("x")
    assert bytes(frame) == b"xbc"


def test_a_length_alone_takes_no_room_and_a_large_frame_gets_it_as_it_comes() -> None:
    size = 5 * AT_FIRST + 3
    framer = Framer(memoryview(bytearray(1 << 18)), max_frame=1 << 30)
    _deliver(framer, size.to_bytes(4, "big"))
    assert framer.next_frame() is None
    assert len(framer.receive_into()) == AT_FIRST
    body = memoryview(bytes(range(256)) * (size // 256 + 1))[:size]
    sent, frame = 0, None
    while frame is None:
        sent += _deliver(framer, body[sent : sent + 300_000])
        frame = framer.next_frame()
    assert frame == body
