"""What a replay reads from: a file, a pipe or standard input, plain, gzip or zstd, of messages or a capture of them.

What it is, its first bytes say, not its name. Packed input is unpacked by a thread of its own, into a few buffers that
go round, while the caller works on those before. ISA-L unpacks gzip twice as fast as zlib does, by the same format.
"""

import hashlib
import itertools
import os
import queue
import sys
import threading

import numpy as np
from isal import isal_zlib

from photonlab.errors import UserError
from photonlab.systems.captures import MAGIC_BYTES, CaptureStream, is_capture

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK = 1 << 20  # bytes at a time: they are worked on while still in cache
STANDARD_INPUT = "-"
_RAW = 1 << 18
_BUFFERS = 4
_ZSTD_FRAME, _ZSTD_SKIPPED = b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"  # behind any byte from 50 to 5f


class Input:
    """An input that is open.

    Parameters
    ----------
    path : path-like
        Of a file or a pipe; "-" is standard input.
    hashed : bool
        Take a digest of the bytes as they are stored.
    session, lines : optional
        Of a capture, what to follow, as `CaptureStream` takes them.

    Attributes
    ----------
    name : str
        What it is called in errors.
    kind : str
        How it is stored, from the outside in, such as "gzip" or "zstd, capture"; empty if it is plain.
    size : int
        Bytes of the file, 0 for a pipe.
    damage : str
        What ended it before its end, empty for nothing.
    counters : dict of str to int
        Of a capture: what became of its packets.

    Raises
    ------
    UserError
        If it cannot be opened; if a session or lines are chosen, and it is no capture.
    """

    def __init__(self, path, hashed=False, *, session=None, lines=None):
        path = os.fspath(path)
        self.name = "standard input" if path == STANDARD_INPUT else path
        file = _open(path)
        self._raw, self._reader = _Raw(file, hashed), None
        try:
            status = os.fstat(file.fileno())
            self.size = status.st_size if file.seekable() else 0
            kinds, layers = [], [_Sniffed(self._raw)]
            while True:
                layer = layers[-1]
                head = layer.peek(MAGIC_BYTES)
                make = _unpacker(head)
                if make is None or len(layers) > 2:
                    break
                kinds.append(make.kind)
                layers.append(_Sniffed(make(layer)))
            self._stream = layers[-1]
            self._layers = layers[1:]
            self._capture = None
            if is_capture(head) and len(head) >= 4:
                kinds.append("capture")
                self._stream = self._capture = CaptureStream(self._stream, self.name, session, lines)
            elif session is not None or lines is not None:
                raise UserError(f"{self.name}: not a capture, which alone has sessions and lines to choose from")
            self.kind = ", ".join(kinds)
        except OSError as error:
            self._raw.file.close()
            raise UserError(f"{self.name}: cannot be read after 0 messages: {error.strerror}") from None
        except BaseException:
            self._raw.file.close()
            raise

    @property
    def done(self) -> int:
        """Stored bytes that were read."""
        return self._raw.count

    @property
    def damage(self) -> str:
        """What ended the input before its end."""
        return next((f"{layer.kind}: {layer.damage}" for layer in self._layers if layer.damage), "")

    @property
    def counters(self) -> dict:
        """What became of a capture's packets; empty if it is none."""
        return dict(self._capture.counters) if self._capture is not None else {}

    @property
    def capture(self) -> dict:
        """Of a capture, as plain values: the session, its lines, when it was taken, gaps, what was out of order."""
        found = self._capture
        if found is None:
            return {}
        return {
            "session": found.session,
            "lines": found.lines,
            "times": list(found.times or ()),
            "gaps": [list(gap) for gap in found.gaps],
            "anomalies": found.anomalies,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the stored bytes up to where they were read, or an empty string. Ask when all is read."""
        return self._raw.hasher.hexdigest() if self._raw.hasher is not None else ""

    def chunks(self, next_buffer=None):
        """Yield the messages in pieces of up to `CHUNK` bytes, as arrays of uint8 that are good until the next one.

        Parameters
        ----------
        next_buffer : callable, optional
            Gives memory to read a plain input into, in place of one buffer that is used over and over.

        Raises
        ------
        OSError, UserError
            If it cannot be read on, or a capture is none. Damaged packing just ends it: see `damage`.
        """
        if self.kind or self._raw.hasher is not None:
            yield from self._ahead()
            return
        next_buffer = next_buffer or itertools.repeat(np.empty(CHUNK, np.uint8)).__next__
        while count := self._stream.readinto(buffer := next_buffer()):
            yield buffer[:count]

    def _ahead(self):
        """Yield chunks that a thread reads beforehand, only so many of them."""
        full, empty, stopped = queue.SimpleQueue(), queue.SimpleQueue(), threading.Event()
        stream, hasher = self._stream, None if self.kind else self._raw.hasher
        for _ in range(_BUFFERS):
            empty.put(np.empty(CHUNK, np.uint8))
            if hasher is not None:
                hasher.free.put(None)

        def read():
            try:
                readinto, filled = stream.readinto, CHUNK  # at first with the bytes that were looked at before
                while filled == CHUNK and not stopped.is_set():
                    buffer, filled = empty.get(), 0
                    if hasher is not None:
                        hasher.free.get()  # buffers come back from both in the same order
                    while filled < CHUNK and not stopped.is_set():
                        count = readinto(buffer[filled:])
                        if not count:
                            break
                        filled += count
                        if hasher is not None:
                            if readinto == self._raw.read_only:
                                hasher.put(buffer[filled - count : filled])
                            readinto = self._raw.read_only
                    if hasher is not None:
                        hasher.put(b"", True)
                    full.put(buffer[:filled])
                full.put(buffer[:0])
            except BaseException as error:
                full.put(error)

        self._reader = threading.Thread(target=read, name="photonlab-input", daemon=True)
        self._reader.start()
        try:
            while True:
                item = full.get()
                if isinstance(item, BaseException):
                    raise item
                if not item.size:
                    return
                yield item
                empty.put(item.base)
        finally:
            stopped.set()
            empty.put(np.empty(0, np.uint8))
            self._reader.join(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._raw.hasher is not None:
            self._raw.hasher.stop()
        if self._reader is None or not self._reader.is_alive():  # it may wait for a pipe
            self._raw.file.close()


def _open(path):
    try:
        if path == STANDARD_INPUT:
            return open(0, "rb", buffering=0, closefd=False)
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file, expected a file of ITCH 5.0") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a directory, expected a file of ITCH 5.0") from None
    except PermissionError:
        raise UserError(f"{path}: no permission to read it") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be opened: {error.strerror}") from None


class _Sniffed:
    """A stream of which the first bytes can be looked at before they are read."""

    def __init__(self, stream):
        self._stream, self._head = stream, b""
        self.kind = getattr(stream, "kind", "")

    @property
    def damage(self):
        return self._stream.damage

    def peek(self, size) -> bytes:
        while len(self._head) < size:
            more = bytearray(size - len(self._head))
            count = self._stream.readinto(more)
            if not count:
                break
            self._head += more[:count]
        return self._head

    def readinto(self, buffer) -> int:
        if not self._head:
            return self._stream.readinto(buffer)
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(self._head))
        view[:count], self._head = self._head[:count], self._head[count:]
        return count + (self._stream.readinto(view[count:]) if count < len(view) else 0)


class _Raw:
    """The stored bytes, counted and, if that is wanted, hashed."""

    def __init__(self, file, hashed):
        self.file, self.count = file, 0
        self.hasher = _Hasher() if hashed else None

    def readinto(self, buffer) -> int:
        count = self.read_only(buffer)
        if self.hasher is not None and count:
            self.hasher.put(bytes(memoryview(buffer).cast("B")[:count]))
        return count

    def read_only(self, buffer) -> int:
        """Read, and leave the hashing to the caller."""
        count = self.file.readinto(buffer) or 0
        self.count += count
        return count


class _Hasher:
    """A thread that takes the digest of what it is given, in that order."""

    def __init__(self):
        self._hash, self._given, self._done = hashlib.sha256(), queue.Queue(64), False
        self.free = queue.SimpleQueue()  # a token for each buffer that is done with
        self._thread = threading.Thread(target=self._run, name="photonlab-hash", daemon=True)
        self._thread.start()

    def put(self, data, token=None):
        """Take bytes; put `token`, if there is one, into `free` when they are done with."""
        self._given.put((data, token))

    def hexdigest(self) -> str:
        """Return the digest of all that was given."""
        self.stop()
        return self._hash.hexdigest()

    def stop(self):
        """End the thread."""
        if not self._done:
            self._done = True
            self._given.put((None, None))
            self._thread.join()

    def _run(self):
        while True:
            data, token = self._given.get()
            if data is None:
                return
            self._hash.update(data)
            if token is not None:
                self.free.put(token)


class _Unpacker:
    """One frame after the other of packed bytes."""

    kind = ""

    def __init__(self, source):
        self._source = source
        self._buffer = bytearray(_RAW)
        self._data, self._frame, self._frames = b"", None, 0
        self._more_to_come = False  # the last step gave as much as it was asked for
        self.damage = ""

    def readinto(self, buffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self.damage:
            try:
                unpacked = self._next(len(view))
            except self.errors as error:
                self.damage = f"{' '.join(str(error).split()).rstrip('.')}"
                return 0
            if unpacked is None:
                return 0
            if unpacked:
                view[: len(unpacked)] = unpacked
                return len(unpacked)
        return 0

    def _next(self, size):
        """Return up to `size` unpacked bytes, perhaps none, or None at the end."""
        if self._frame is None:
            while len(self._data) < self.shortest and self._more():
                pass
            if not self._data or (self._frames and not self._data.strip(b"\0") and self._skip_zeros()):
                return None
            if self._frames and not self.begins(self._data):
                self.damage = f"what stands behind frame {self._frames} is none"
                return None
            self._frame = self.make()
            self._frames += 1
        frame = self._frame
        if not self._data and not self._more_to_come and not self._more():
            self.damage = f"cut off within frame {self._frames}"
            return None
        unpacked, self._data = self.step(frame, self._data, size)
        self._more_to_come = len(unpacked) == size or self.holds(frame)
        if frame.eof:
            self._data, self._frame = frame.unused_data, None
        return unpacked

    def _more(self):
        count = self._source.readinto(self._buffer)
        self._data += bytes(self._buffer[:count])
        return count

    def _skip_zeros(self):
        """Skip padding behind the last frame; return whether nothing but padding was left."""
        while not self._data.strip(b"\0"):
            self._data = b""
            if not self._more():
                return True
        self._data = self._data.lstrip(b"\0")
        return False


class _Gzip(_Unpacker):
    kind, shortest, errors = "gzip", 2, (isal_zlib.error, EOFError)

    @staticmethod
    def begins(data):
        return data[:2] == b"\x1f\x8b"

    @staticmethod
    def make():
        return isal_zlib.decompressobj(wbits=31)

    @staticmethod
    def holds(_):
        return False

    @staticmethod
    def step(frame, data, size):
        unpacked = frame.decompress(data, size)
        return unpacked, frame.unconsumed_tail


class _Zstd(_Unpacker):
    kind, shortest, errors = "zstd", 4, (zstd.ZstdError, EOFError)

    @staticmethod
    def begins(data):
        return data[:4] == _ZSTD_FRAME or (data[1:4] == _ZSTD_SKIPPED and data[0] >> 4 == 5)

    @staticmethod
    def make():
        return zstd.ZstdDecompressor()

    @staticmethod
    def holds(frame):
        return not frame.eof and not frame.needs_input

    @staticmethod
    def step(frame, data, size):
        return frame.decompress(data, size), b""


def _unpacker(head):
    return next((kind for kind in (_Gzip, _Zstd) if kind.begins(head)), None)
