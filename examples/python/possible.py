"""Compares downloads of a scoreboard with plain TCP connections that carry them together, one on each path.

A TCP connection of its own on each path, with the same controller, needs no scheduler and no order between the paths. So the time in
which all of them together have delivered the size is what the controllers allow. A second result takes two facts into account that hold for
every sender of Multipath TCP: a segment with a mapping carries 1,428 and not 1,448 bytes, and a path that joins is dialled two RTTs of the
first path later (RFC 8684 sections 3.1 and 3.2). plait dials it after 250 ms if the first path has not answered, so no more is assumed.

    plait scoreboard --random 2000 --seed 900001 --schedulers slot --json --output cells.json
    python3 examples/python/possible.py cells.json
"""

import json
import shlex
import shutil
import statistics
import subprocess
import sys

# The downloads of cells with these properties have other limits than the controllers.
OTHER = {"loss", "outage", "jitter", "rate step", "shared bottleneck", "small rcvbuf", "small sndbuf"}
DIAL_MS = 250
PARTS = [0.01, 0.02, 0.04, 0.07] + [part / 20 for part in range(2, 22)]
EXPECTED = "expected: files of `plait scoreboard --random N --schedulers slot --json --output FILE`"
UNITS = {"ms": 1, "us": 0.001}


def options(command):
    """Returns the options of a command as pairs, without the switch `--exact`."""
    words = [word for word in shlex.split(command)[2:] if word != "--exact"]
    return list(zip(words[::2], words[1::2]))


def size_of(given):
    return int(dict(given)["--workload"].removeprefix("download:").removesuffix("B"))


def rtt_ms(path):
    """Returns the RTT of a path such as `a:rtt=20ms,rate=5mbit`."""
    keys = dict(key.split("=", 1) for key in path.split(":", 1)[1].split(",") if "=" in key)
    times = [keys["rtt"]] if "rtt" in keys else [keys["owd_down"], keys["owd_up"]]
    return sum(float(time[:-2]) * UNITS[time[-2:]] for time in times)


def times_alone(kept, size):
    """Returns the time in ms in which plain TCP downloads `size` bytes on each path alone."""
    words = ["plait", "compare", "--exact", "--runs", "1", "--schedulers", "minrtt", "--json", "-q"]
    words += [word for pair in kept for word in pair] + ["--workload", f"download:{size}B"]
    rows = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)["rows"]
    alone = {row["scheduler"]: row["measures"]["completion_ms"]["median"] for row in rows}
    return [alone[f"tcp:{value.split(':')[0]}"] for key, value in kept if key == "--path"]


def delivered(curve, time):
    """Returns the bytes at `time`, on lines between the points (time, bytes)."""
    for (before, less), (after, more) in zip([(0, 0), *curve], curve):
        if time < after:
            return less + (more - less) * max(time - before, 0) / (after - before)
    return curve[-1][1]


def together(curves, size, join_after=0.0, payload=1.0):
    """Returns the time in which all paths have delivered the size together."""
    low, high = 0.0, max(curve[-1][0] for curve in curves) / payload + join_after
    for _ in range(60):
        middle = (low + high) / 2
        bytes_then = delivered(curves[0], middle)
        bytes_then += sum(delivered(curve, middle - join_after) for curve in curves[1:])
        low, high = (low, middle) if bytes_then * payload >= size else (middle, high)
    return high


def shares(cell):
    """Returns the shares of the bound for the scheduler, and for the connections of TCP without and with the two facts."""
    given = options(cell["command"])
    size = size_of(given)
    kept = [pair for pair in given if pair[0] not in ("--workload", "--schedulers", "--runs")]
    points = [(max(1448, int(size * part)), times_alone(kept, max(1448, int(size * part)))) for part in PARTS]
    curves = [sorted((times[at], done) for done, times in points) for at in range(len(points[0][1]))]
    join_after = min(2 * rtt_ms(next(value for key, value in kept if key == "--path")), DIAL_MS)
    (comparison,) = cell["comparisons"]
    took, *others = comparison["values"].values()
    if others:
        sys.exit(f"possible.py: cell {cell['number']} has several schedulers; {EXPECTED}")
    bests = [took, together(curves, size), together(curves, size, join_after, 1428 / 1448)]
    return [comparison["bound"] / best for best in bests]


def cells_of(name):
    """Returns the cells of a scoreboard in JSON."""
    try:
        with open(name, encoding="utf-8") as file:
            return json.load(file)["cells"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"possible.py: {name}: {error}; {EXPECTED}")


def main():
    cells = [cell for name in sys.argv[1:] for cell in cells_of(name)]
    cells = [cell for cell in cells if "download" in cell["classes"] and not OTHER & set(cell["classes"])]
    cells = [cell for cell in cells if size_of(options(cell["command"])) >= 1_000_000]
    if not cells:
        sys.exit(f"possible.py: no download of 1 MB or more; {EXPECTED}")
    if shutil.which("plait") is None:
        sys.exit("possible.py: there is no `plait` on PATH; `make demo` builds target/release/plait")
    rows = []
    for cell in cells:
        rows.append(shares(cell))
        print(f"\r{len(rows)} of {len(cells)} downloads", end="", file=sys.stderr, flush=True)
    print("\rshare of the bound: lowest tenth, median, highest tenth")
    relative = [row[0] / row[2] for row in rows]
    names = ["scheduler", "connections of TCP", "the same, joined as RFC 8684 allows", "scheduler over the last row"]
    for name, values in zip(names, [*zip(*rows), relative], strict=True):
        ordered = sorted(values)
        low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
        print(f"{low:.3f}  {statistics.median(ordered):.3f}  {high:.3f}  {name}")


if __name__ == "__main__":
    main()
