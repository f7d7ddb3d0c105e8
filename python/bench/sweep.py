"""The cost of a Dask cluster: pairs of the same sweep, in this process and over two workers of this machine.

``python3 python/bench/sweep.py [PAIRS]``. Both use two cores. The data sets are compared. It needs psutil, which Dask
installs.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from distributed import Client, LocalCluster

from pairs import asked

import plait

SCENARIOS = [
    plait.Scenario(
        ["wifi:rate=20mbit,rtt=22ms,loss=0.5%", "lte:rate=8mbit,rtt=60ms"],
        workload="download:256kB",
        schedulers="minrtt,ecf,blest",
        runs=5,
        seed=seed,
        vary={"lte.rtt": "20ms..200ms:20", "wifi.rtt": "10ms..50ms:4"},
    )
    for seed in range(1, 6)
]


def measured(out, executor, processes):
    """Makes the sweep. Returns its time, the processor time of all processes, and its data set."""
    before = sum(sum(process.cpu_times()[:2]) for process in processes)
    began = time.perf_counter()
    swept = plait.sweep(SCENARIOS, out=out, executor=executor, progress=False)
    passed = time.perf_counter() - began
    return passed, sum(sum(process.cpu_times()[:2]) for process in processes) - before, swept


def main(pairs):
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        processes = [psutil.Process(number) for number in [os.getpid(), *client.run(os.getpid).values()]]
        ratios = []
        for pair in range(-1, pairs):
            with tempfile.TemporaryDirectory() as directory:
                plain = measured(Path(directory) / "plain", None, processes)
                dask = measured(Path(directory) / "dask", client, processes)
            if plain[2].manifest != dask[2].manifest:
                sys.exit("the data sets differ")
            # The first pair imports libraries.
            if pair >= 0:
                ratios.append((dask[0] / plain[0], dask[1] / plain[1]))
                print(f"here {plain[0]:.2f} s, Dask {dask[0]:.2f} s; processor {plain[1]:.2f} s, {dask[1]:.2f} s", flush=True)
        cells, runs = (plain[2].manifest[name] for name in ("cells", "runs"))
        time_ratio, processor_ratio = (statistics.median(column) for column in zip(*ratios, strict=True))
        print(f"{cells} cells, {runs} runs: Dask takes {time_ratio:.3f} of the time, {processor_ratio:.3f} of the processor time")


if __name__ == "__main__":
    main(asked(__doc__, 15))
