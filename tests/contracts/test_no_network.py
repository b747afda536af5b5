"""Tests, the demo and the tables of the library need no network: every process of pytest refuses to reach another machine."""

import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from dpmoments import datasets
from support.network import NetworkReachedError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("address", ["https://archive.ics.uci.edu/", "http://192.0.2.1/", "http://[2001:db8::1]/"])
def test_this_process_reaches_no_other_machine(address):
    with pytest.raises(NetworkReachedError):
        urllib.request.urlopen(address, timeout=1.0)
    with socket.socket() as end, pytest.raises(NetworkReachedError):
        end.connect(("192.0.2.1", 80))


def test_this_machine_is_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5.0).close()


def test_every_table_is_at_hand():
    """They are read from the package: nothing is downloaded in this process."""
    sizes = {data().frame.num_rows for data in (datasets.wine, datasets.adult, datasets.airfoil)}
    assert sizes == {178, 45_222, 1503}
    assert datasets.adult(complete=False).frame.num_rows == 48_842


@pytest.mark.slow
def test_the_demo_needs_no_network_and_prints_at_most_sixty_lines(tmp_path):
    guarded = "import runpy, sys; from support.network import forbid; forbid(); runpy.run_path(sys.argv[0], run_name='__main__')"
    program = guarded.replace("sys.argv[0]", repr(str(ROOT / "examples" / "demo.py")))
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("DPMOMENTS_DATA", None)
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert len((run.stdout + run.stderr).splitlines()) <= 60
    assert {"adult.json", "adult.png", "adult.html"} <= {path.name for path in tmp_path.iterdir()}
