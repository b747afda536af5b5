"""The command line: ``dpmoments init | forecast | release | show | verify | mechanisms | audit``, and one command an analysis."""

from dpmoments.cli.entry import main

__all__ = ["main"]
