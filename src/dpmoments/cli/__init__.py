"""Command line: ``dpmoments init | forecast | forecast-mean | release | release-mean | show | verify | …``.

In addition every analysis is a command.
"""

from dpmoments.cli.entry import load_command as load_command
from dpmoments.cli.entry import main

__all__ = ["main"]
