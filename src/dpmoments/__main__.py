"""Command ``dpmoments``, stopped without a traceback even while it is being imported."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence

STOPPED = 130
"""Exit code after a keyboard interrupt, as in shells."""
MESSAGE = "dpmoments: stopped; nothing was spent\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (:func:`dpmoments.cli.main`); return 130 after a keyboard interrupt."""
    usual = signal.getsignal(signal.SIGINT)
    # Only the main thread may set handlers; one that is not Python's own was chosen by whoever started the process.
    watched = usual is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if watched:
        # Not an exception: compiled modules replace one that comes while they are imported by an ImportError of their own.
        signal.signal(signal.SIGINT, _stop)
    try:
        from dpmoments.cli import load_command
        from dpmoments.cli import main as run

        load_command(sys.argv[1:] if arguments is None else arguments)
    finally:
        if watched:
            signal.signal(signal.SIGINT, usual)
    try:
        code = run(arguments)
    except KeyboardInterrupt:  # before the command began, or after it ended
        os.write(2, b"dpmoments: stopped\n")
        code = STOPPED
    if arguments is None and code:
        # Of what was stopped in the middle, threads of libraries still run (Arrow reads a file ahead): they can abort the process
        # as the interpreter ends.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _stop(number: int, frame: object) -> None:
    """Stop the process, which has only imported modules so far."""
    del number, frame
    os.write(2, MESSAGE.encode())
    os._exit(STOPPED)


if __name__ == "__main__":
    sys.exit(main())
