"""``python -m dpmoments`` is the command ``dpmoments``."""

import sys

from dpmoments_command import main

if __name__ == "__main__":
    sys.exit(main())
