"""Command line: ``dpmoments init

preflight | forecast | release | show | report | …``.

In addition every analysis is a command.
"""

from dpmoments.cli.entry import load_command as load_command
from dpmoments.cli.entry import main

__all__ = ["main"]
