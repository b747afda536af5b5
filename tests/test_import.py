"""What ``import dpmoments`` brings in: nothing that is slow to load before it is used, and no warning."""

import subprocess
import sys

SLOW = {
    *("dask", "distributed", "duckdb", "numba", "pandas", "polars", "pyspark"),  # a user's, where the user has them
    *("formulaic", "matplotlib", "opendp", "randomgen", "rich", "sklearn", "typer", "urllib.request"),
    *("pyarrow.dataset", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats"),
}
PROGRAM = """
import sys
import dpmoments
print(*sys.modules)
dpmoments.noise.secure_generator()
dpmoments.privacy.curves.gaussian.gaussian_epsilon(1e-6, 1.0, 1.0)
print(*sys.modules)
"""


def test_slow_modules_wait_until_they_are_used() -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    imported, used = run.stdout.splitlines()
    assert run.stderr == ""
    assert SLOW & set(imported.split()) == set()
    assert SLOW & set(used.split()) >= {"randomgen", "scipy.optimize", "scipy.special"}
