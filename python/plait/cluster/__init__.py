"""Sweeps: many scenarios over many machines, into one data set.

`plait.sweep` is the call. A *unit* of work is a cell of a scenario and a range of its runs. Its name is its content
address, so finished runs are found again after a crash, on other machines, and by the command line.

>>> import plait
>>> from plait.cluster.sweeping import plans_of
>>> paths = ["wifi:rate=20mbit,rtt=22ms", "lte:rate=8mbit,rtt=60ms"]
>>> (plan,) = plans_of(plait.Scenario(paths, workload="download:64kB", schedulers="minrtt,ecf", runs=40))
>>> plan.cells, plan.runs, plan.describe((1, 0, 16))
(4, 160, 'scenarios[0]: ecf, runs 0 to 15')

* `plait.cluster.sweeping` has the call, and the loop that hands out units.
* `plait.cluster.executors` sends work to an executor or to a Dask cluster, and `plait.cluster.worker` does it there.
* `plait.cluster.dataset` writes the Parquet files and the manifest.

``python3 -m plait.cluster`` is the same from a shell.
"""

from plait.cluster.dataset import Sweep
from plait.cluster.sweeping import sweep

__all__ = ["Sweep", "sweep"]
