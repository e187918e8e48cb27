"""The samples of the report and launch tests serve here, too."""

import sys
from pathlib import Path

for folder in ("report", "launch"):
    sys.path.append(str(Path(__file__).parents[1] / folder))
