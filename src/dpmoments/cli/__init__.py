"""The command line: ``dpmoments init | forecast | forecast-mean | release | release-mean | show | verify | mechanisms | audit``.

Every analysis is a command beside them.
"""

from dpmoments.cli.entry import main

__all__ = ["main"]
