"""A process whose tests reach no other machine: connections and lookups of names outside this one are errors."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


class NetworkReachedError(RuntimeError):
    """A test tried to reach another machine; no ``OSError``, which the code under test may expect and handle."""


@cache
def forbid() -> None:
    """From now on make every connection and every lookup of a name an error, unless they are of this machine."""
    try:
        own = {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        own = set()
    sys.addaudithook(_guard({*own, socket.gethostname(), "localhost", ""}))


def _guard(own: set[str]) -> Callable[[str, tuple[Any, ...]], None]:
    def is_local(host: str | bytes | None) -> bool:
        name = (host.decode() if isinstance(host, bytes) else host or "").partition("%")[0]
        if name in own:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or address.is_unspecified

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            end, address = arguments
            # A datagram socket sends nothing when it is connected: Dask asks it for this machine's address.
            if end.family not in (socket.AF_INET, socket.AF_INET6) or end.type == socket.SOCK_DGRAM:
                return
            host = address[0]
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            host = arguments[0]
        else:
            return
        if not is_local(host):
            raise NetworkReachedError(f"a test tried to reach {host!r}")

    return refuse
