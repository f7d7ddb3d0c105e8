"""The cost of a scheduler in Python: pairs of the same run, with a copy of minrtt in Python and with minrtt.

``python3 python/bench/decision.py [PAIRS]``. It prints the processor time that a decision adds, and the median of the pairs.
"""

import statistics
import sys
import time

from pairs import asked

import plait

PATHS = ["wifi:rate=20mbit,rtt=22ms,loss=0.5%", "lte:rate=8mbit,rtt=60ms,jitter=2ms"]


class PyCounted:
    """The usable subflow with the lowest RTT. Counts its decisions."""

    decisions = 0

    def schedule(self, view):
        PyCounted.decisions += 1
        return min(view.usable, key=lambda subflow: (subflow.srtt_ms, subflow.id))


def measured(scheduler):
    """Returns the processor time of a run in seconds, and the run."""
    began = time.process_time()
    run = plait.run(PATHS, workload="bulk:20s", scheduler=scheduler)
    return time.process_time() - began, run


def main(pairs):
    costs = []
    for pair in range(-1, pairs):
        PyCounted.decisions = 0
        mine, own = measured(PyCounted)
        theirs, built_in = measured("minrtt")
        if own.digest != built_in.digest:
            sys.exit("the runs differ")
        cost = (mine - theirs) / PyCounted.decisions * 1e6
        # The first pair loads the package.
        if pair >= 0:
            costs.append(cost)
            print(f"{cost:.2f} us a decision", flush=True)
    print(f"median of {pairs} pairs: {statistics.median(costs):.2f} us a decision")


if __name__ == "__main__":
    main(asked(__doc__, 9))
