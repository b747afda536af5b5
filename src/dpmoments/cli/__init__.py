"""The command line: ``dpmoments init | forecast | release | show | ridge | pca | verify | mechanisms``."""

from dpmoments.cli.entry import main

__all__ = ["main"]
