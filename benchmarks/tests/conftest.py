"""Figures and practice pages need no network."""

from support import network

network.forbid()
