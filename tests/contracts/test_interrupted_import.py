"""Ctrl-C while the command line is still importing: exit code 130 and one line, whatever was being imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

from dpmoments.__main__ import main
from support.wheel_requirements import PROJECT

pytestmark = pytest.mark.long(sets=None)

SLOW_IMPORT = """\
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            print("importing", flush=True)
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                {afterwards}
        return None

sys.meta_path.insert(0, Slow())
"""
RAISED_AGAIN = "raise"
REPLACED = "raise ImportError('a compiled module failed to import') from None"  # as NumPy's C interface does


def script() -> list[str]:
    """What an installer writes for the declared command."""
    module, function = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["scripts"]["dpmoments"].split(":")
    return ["-c", f"import sys\nfrom {module} import {function}\nsys.exit({function}())"]


@pytest.mark.long(sets=2)
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of other systems")
@pytest.mark.parametrize("how", [script(), ["-m", "dpmoments"]], ids=["script", "module"])
@pytest.mark.parametrize(
    ("module", "afterwards"), [("numpy", RAISED_AGAIN), ("typer", RAISED_AGAIN), ("numpy", REPLACED)]
)
def test_a_command_that_is_stopped_while_it_imports(
    tmp_path: Path, how: list[str], module: str, afterwards: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT.format(module=module, afterwards=afterwards))
    paths = os.pathsep.join(
        filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", ""), str(PROJECT.parent / "src")])
    )
    with subprocess.Popen(
        [sys.executable, *how, "show", "release.json"],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As in a shell: a process that runs in the background ignores the signal, and so do those that it starts.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate(timeout=60)
    assert (process.returncode, said, complaint) == (130, "", "dpmoments: stopped; nothing was spent\n")


def test_a_command_that_is_not_stopped_leaves_the_signal_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert main(["no-such-command"]) == 2
    assert "no-such-command" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_a_stop_around_a_command_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stopped(arguments: object) -> int:
        del arguments
        raise KeyboardInterrupt

    monkeypatch.setattr("dpmoments.cli.main", stopped)
    assert main([]) == 130
    assert capfd.readouterr().err == "dpmoments: stopped\n"
