"""Make the modules of the corpus importable by their plain names, for pytest and for each other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
