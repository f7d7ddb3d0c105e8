"""Trains a small policy by random search, and compares it with published schedulers on links that it never saw.

The policy gives each subflow a score and takes the lowest. If that subflow has no room, the policy waits for it.
"""

import math
import random
import sys

import gymnasium
import numpy as np

import plait
from plait.gym import CONNECTION, ID, SUBFLOW

UNSENT = CONNECTION.index("unsent_bytes")
PRESENT, USABLE, SRTT, CWND = map(SUBFLOW.index, ("present", "usable", "srtt_ms", "cwnd_bytes"))


def network(draw):
    """Draws two paths."""
    rtts = [math.exp(draw.uniform(math.log(10), math.log(200))) for _ in "ab"]
    keys = [f"queue={draw.randint(40, 200)}kB,loss={draw.choice([0, 0, 0.1, 0.5])}%" for _ in "ab"]
    return [f"{name}:rate={draw.uniform(2, 40):.1f}mbit,rtt={rtts.pop():.0f}ms,{keys.pop()}" for name in "ab"]


def action(weights, seen):
    """Returns the subflow with the lowest score: its RTT, and if it is busy the time until it has room."""
    wait, drain, rtt_s = weights
    subflows = seen[len(CONNECTION) :].reshape(-1, len(SUBFLOW))
    backlog = seen[UNSENT] / np.maximum(subflows[:, CWND], 1)
    busy = (1 - subflows[:, USABLE]) * (wait + drain * backlog)
    return int(((subflows[:, SRTT] + rtt_s) * (1 + busy) + 1e9 * (1 - subflows[:, PRESENT])).argmin())


def completion(env, weights, paths, seed):
    """Returns the logarithm of the completion time in ms."""
    seen, _ = env.reset(seed=seed, options={"paths": paths})
    ended = False
    while not ended:
        seen, reward, terminated, truncated, _ = env.step(action(weights, seen))
        ended = terminated or truncated
    return math.log(-reward)


def main(seed=1, steps=80, training=24, unseen=200):
    draw, env = random.Random(seed), gymnasium.make(ID, workload="download:512kB").unwrapped
    known, new = ([network(draw) for _ in range(count)] for count in (training, unseen))
    best, lowest = (0.0, 0.0, 0.0), math.inf
    for step in range(steps):
        tried = tuple(max(0.0, it + draw.gauss(0, 0.7)) for it in best) if step else best
        cost = sum(completion(env, tried, paths, at) for at, paths in enumerate(known)) / training
        if cost < lowest:
            best, lowest = tried, cost
            print(f"step {step}: {math.exp(cost):.1f} ms, weights {', '.join(f'{it:.2f}' for it in best)}")
    logs = {"policy": [completion(env, best, paths, 1000 + at) for at, paths in enumerate(new)]}
    for name in ["minrtt", "linux", "ecf", "blest", "stms-c", "slot"]:
        run = [plait.run(paths, workload="download:512kB", scheduler=name, seed=1000 + at) for at, paths in enumerate(new)]
        logs[name] = [math.log(it.measures["completion_ms"]) for it in run]
    print(f"\n{unseen} networks that it never saw\nscheduler   mean ms  vs minrtt  1 % faster than minrtt")
    for name, own in sorted(logs.items(), key=lambda it: sum(it[1])):
        faster = sum(mine - theirs < -0.01 for mine, theirs in zip(own, logs["minrtt"], strict=True))
        mean, least = (math.exp(sum(it) / unseen) for it in (own, logs["minrtt"]))
        print(f"{name:10} {mean:8.1f} {mean / least:9.3f}x {faster:13} of {unseen}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
