"""`python -m pipelink_rules.cli`."""

import sys

from pipelink_rules.cli import main

sys.exit(main())
