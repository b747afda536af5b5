"""Command line: the curator's and the analyst's steps, and a command for each analysis."""

from dpmoments.cli.entry import load_command as load_command
from dpmoments.cli.entry import main as main
