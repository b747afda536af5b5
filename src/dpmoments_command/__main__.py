"""``python -m dpmoments_command``, the same as ``dpmoments``."""

import sys

from dpmoments_command import main

sys.exit(main())
