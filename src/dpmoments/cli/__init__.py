"""Command line: ``dpmoments init | preflight | forecast | release | show | report | …``, and one command for each analysis."""

from dpmoments.cli.entry import load_command as load_command
from dpmoments.cli.entry import main as main
