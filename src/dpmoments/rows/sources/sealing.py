"""Encryption of what workers of an engine hand back: an engine may write it to a disk on its way."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from dpmoments.foundation.errors import InputValueError

_KEY_BYTES = 32
_NONCE_BYTES = 12


@dataclass(frozen=True, eq=False, repr=False)
class Seal:
    """A key of one pass over a table, which only the driver and its workers hold.

    Content is encrypted and authenticated with AES-256 in Galois/counter mode; nonces are random, which is safe for far more
    messages than a pass has partitions (2³²).

    Attributes
    ----------
    key : bytes
        32 random bytes.

    Examples
    --------
    >>> seal = Seal()
    >>> sealed = seal.sealed(b"n = 2001")
    >>> b"2001" in sealed, seal.opened(sealed)
    (False, b'n = 2001')
    """

    key: bytes = field(default_factory=lambda: os.urandom(_KEY_BYTES))

    def sealed(self, content: bytes) -> bytes:
        """Encrypt content."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key).encrypt(nonce, content, None)

    def opened(self, sealed: bytes) -> bytes:
        """Decrypt content."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self.key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except InvalidTag:
            pass
        raise InputValueError("the result of a partition was changed on its way from a worker")
