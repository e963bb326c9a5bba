"""A log file seen through memory, so that the kernel can send its pages without a copy of ours in between.

The bytes of a mapping are for system calls only, never for Python to look at: should the disk fail, or the file be cut,
after the pages were found in memory, a system call answers with an error where a look would end the process."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Final

_PAGE: Final = mmap.PAGESIZE
AVAILABLE: Final = sys.platform == "linux"
_mincore = ctypes.CDLL(None, use_errno=True).mincore if AVAILABLE else None
if _mincore is not None:
    _mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)


class Mapping:
    """The first `size` bytes of a file. Unmapped when neither it nor a view of it is held any more."""

    __slots__ = ("_address", "_view", "size")

    def __init__(self, fd: int, size: int) -> None:
        # Writable only because an address can be had of nothing else; what is handed out is not.
        mapped = mmap.mmap(fd, size)
        self.size = size
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        self._view = memoryview(mapped).toreadonly()

    def view(self, position: int, size: int) -> memoryview | None:
        """The bytes, if all of them are in memory now."""
        start = position - position % _PAGE
        length = position + size - start
        pages = -(-length // _PAGE)
        resident = ctypes.create_string_buffer(pages)
        if _mincore is None or _mincore(self._address + start, length, resident) != 0:
            return None
        return self._view[position : position + size] if b"\0" not in resident.raw else None
