"""Bytes of a text file as a stream of UTF-8, decompressed, never whole in memory."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

from dpmoments.table_libraries import pa
from dpmoments.text_files.text_format import TextFormat

__all__ = ["EncodingError", "open_utf8"]

PIECE = 1 << 20


class EncodingError(ValueError):
    """The bytes are not text in the encoding; the message holds none of them."""


def open_utf8(path: Path, text_format: TextFormat, raw: Any = None) -> Any:
    """The text of a file, below the lines that are skipped, as a binary stream of UTF-8.

    ``raw`` is the file as :class:`pyarrow.OSFile`, for a caller who wants to know how much of it was read.

    Whatever is decoded is decoded in one go from the first byte, so that it does not matter where reads end.
    """
    raw = pa.OSFile(str(path)) if raw is None else raw
    try:
        stream = pa.CompressedInputStream(raw, pa.Codec.detect(str(path)).name)
    except (TypeError, ValueError):  # what versions of pyarrow say where no compression has such an ending
        stream = raw
    read_through = text_format.is_utf8 and text_format.skip_lines == 0
    return stream if read_through else Utf8Stream(stream, text_format.encoding, text_format.skip_lines)


class Utf8Stream:
    r"""A binary stream of UTF-8 made of one in another encoding.

    Parameters
    ----------
    stream : binary stream
    encoding : str
    skip_lines : int
        Lines that are left out at its beginning; they end in LF, CR LF or CR.

    Examples
    --------
    >>> import io
    >>> Utf8Stream(io.BytesIO("Größe;12\n".encode("latin-1")), "latin-1").read(100).decode()
    'Größe;12\n'
    """

    def __init__(self, stream: Any, encoding: str, skip_lines: int = 0) -> None:
        self._stream = stream
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._made = b""
        self._ended = self._begun = self.closed = False
        for _ in range(skip_lines):
            self._skip_line()

    def read(self, size: int = -1) -> bytes:
        """``size`` bytes, fewer at the end of the stream alone."""
        pieces, length = [self._made], len(self._made)
        while not self._ended and (size is None or size < 0 or length < size):
            pieces.append(self._following())
            length += len(pieces[-1])
        whole = b"".join(pieces)
        cut = len(whole) if size is None or size < 0 else size
        self._made = whole[cut:]
        return whole[:cut]

    def close(self) -> None:
        """Close the stream."""
        self.closed = True
        self._stream.close()

    def _following(self) -> bytes:
        raw = bytes(self._stream.read(PIECE))
        self._ended = not raw
        fault = False
        try:
            text = self._decoder.decode(raw, self._ended)
            if text and not self._begun:
                self._begun = True
                text = text.removeprefix("\ufeff")  # the byte order mark, where the codec leaves it
            made = text.encode()
        except UnicodeError:
            fault = True
        if fault:  # outside the handler: the error holds the bytes
            raise EncodingError(f"its bytes are not text in {self._encoding}: pass the encoding it was saved in")
        return made

    def _skip_line(self) -> None:
        line_end = -1
        while line_end < 0:
            found = [place for mark in (b"\n", b"\r") if (place := self._made.find(mark)) >= 0]
            # a CR that is last may have an LF after it
            if found and (min(found) + 1 < len(self._made) or self._ended):
                line_end = min(found)
            elif self._ended:
                self._made = b""
                return
            else:
                self._made += self._following()
        step = 2 if self._made[line_end : line_end + 2] == b"\r\n" else 1
        self._made = self._made[line_end + step :]
