"""``python -m dpmoments_command``, equivalent to ``dpmoments``."""

import sys

from dpmoments_command import main

sys.exit(main())
