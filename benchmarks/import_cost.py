"""What importing youyou costs beside importing its dependencies: a ratio of CPU times, pair by pair, fresh processes.

python benchmarks/import_cost.py [PAIRS]
"""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median

DEPENDENCIES = "import trio, trio_util, attrs, cattrs, msgspec, jsonschema_rs"


def cost(code: str) -> float:
    """CPU seconds of a process that runs ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(pairs: int) -> None:
    """Print the median and the range of the ratio. The first pair warms up and does not count."""
    ratios = [cost("import youyou") / cost(DEPENDENCIES) for _ in range(pairs + 1)][1:]
    print(f"import youyou / import its dependencies: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
