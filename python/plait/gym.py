"""A Gymnasium environment in which an agent is the scheduler.

Importing this module registers ``plait-multipath-v0``:

>>> import gymnasium, plait.gym
>>> env = gymnasium.make("plait-multipath-v0", paths=["wifi:rate=20mbit,rtt=22ms", "lte:rate=8mbit,rtt=60ms"])
>>> observation, info = env.reset(seed=1)
>>> observation.shape, env.action_space
((28,), Discrete(3))
>>> ended = False
>>> while not ended:
...     observation, reward, terminated, truncated, info = env.step(info["action_mask"].argmax())
...     ended = terminated or truncated
>>> info["run"].complete, reward == -info["run"].measures["completion_ms"]
(True, True)
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

try:
    import gymnasium
    import numpy as np
    from numpy.typing import NDArray
except ImportError as error:
    raise ImportError(f"plait.gym needs {error.name}: pip install 'plait[gym]'") from None

from plait import _plait
from plait.arguments import whole, word
from plait.listing import list_measures
from plait.results import Run
from plait.scenario import AnyPath, AnyScenario, Setting, draft_of, filled

ID = "plait-multipath-v0"

Observation: TypeAlias = "NDArray[np.float32]"

CONNECTION, SUBFLOW = _plait.Episode.numbers()
"""The names of the numbers of an observation: about the connection, and about each subflow."""

MOST_PLACES = 8
"""The largest number of subflows of a connection."""

_USABLE = SUBFLOW.index("usable")
_LARGEST = float(np.finfo(np.float32).max)


class MultipathEnv(gymnasium.Env[Observation, "np.int64"]):  # type: ignore[misc]
    """An episode is a run. A step is a decision about the next segment, while at least one subflow can take it.

    **Observation.** A vector: the numbers of `CONNECTION`, and then those of `SUBFLOW` for each subflow, in the order
    of their ids. Absent subflows are 0. Times are in ms and sizes in bytes; an unknown RTT is 0.

    **Action.** The place of a subflow in the observation, or the number of places to wait. An action that chooses a
    subflow without room waits for it. ``info["action_mask"]`` has the subflows with room, and the wait.

    **Reward.** 0 until the run ends. Then it is the measure ``reward``, negative if lower is better, or the result of
    ``reward`` if that is a function of the `plait.Run`. A run that does not finish gives ``unfinished_reward``.

    ``paths``, ``scenario`` and the settings are those of `plait.run`, without a scheduler: the agent is the scheduler.
    Schedulers and runs of a scenario are ignored. ``places`` is the number of subflows in an observation. By default it
    is that of the scenario: its paths, times the setting ``subflows``.

    ``reset(seed=N)`` makes the run of seed N. Without a seed, the environment draws one, which stands in
    ``info["seed"]``. ``reset(options={"paths": ...})`` and ``options={"scenario": ...}`` change the network of one
    episode. A scenario brings its own workload, and the settings of the constructor override it. At the end,
    ``info["run"]`` is the run. Its ``command`` is None, because no command line knows the agent.

    The decisions of both ends of the connection are steps, as those of a scheduler that is a Python class.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        paths: Iterable[AnyPath] | AnyPath = (),
        *,
        scenario: AnyScenario | None = None,
        reward: str | Callable[[Run], float] = "completion_ms",
        unfinished_reward: float = -1e6,
        places: int | None = None,
        **settings: Setting,
    ) -> None:
        if not paths and scenario is None:
            paths = ["wifi-home", "lte-att"]
        _refuse(settings)
        # They also count for the scenario of a single episode, and the default workload does not.
        self._settings = dict(settings)
        if scenario is None:
            settings.setdefault("workload", "download:512kB")
        self._draft = draft_of(scenario, paths, settings)
        self._reward = reward if callable(reward) else _measure(word("reward", reward))
        self._unfinished_reward = _number("unfinished_reward", unfinished_reward)
        self.places = _subflows(self._draft) if places is None else whole("places", places, 2, MOST_PLACES)
        self._check_places(self._draft)
        size = len(CONNECTION) + self.places * len(SUBFLOW)
        self.observation_space = gymnasium.spaces.Box(0.0, _LARGEST, (size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(self.places + 1)
        self._episode: _plait.Episode | None = None
        self._nothing: Observation = np.zeros(size, np.float32)
        self._seen = self._nothing
        self._seed = 0

    @property
    def names(self) -> list[str]:
        """The name of each number of an observation, such as ``srtt_ms.0``."""
        return CONNECTION + [f"{name}.{place}" for place in range(self.places) for name in SUBFLOW]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins a run, and returns the observation of its first decision."""
        super().reset(seed=seed)
        self._seed = int(self.np_random.integers(2**63)) if seed is None else seed
        self.close()
        draft = self._drawn(options)
        if options:
            self._check_places(draft)
        draft.set("seed", [str(self._seed)])
        self._episode = _plait.Episode(draft, self.places)
        self._seen = self._observation(self._episode.observe())
        return self._seen, {"seed": self._seed, "action_mask": self.action_masks()}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Makes the decision, and goes on to the next one or to the end of the run."""
        if self._episode is None:
            raise _plait.Error("there is no episode: call reset")
        # A run without a decision has ended before the first step.
        report = self._episode.report
        if report is None:
            place = whole("action", action, 0, self.places)
            try:
                numbers = self._episode.act(place if place < self.places else -1)
            except BaseException:
                # After Ctrl-C, the agent lacks this observation, and its next action would answer it.
                self.close()
                raise
            if numbers is not None:
                self._seen = self._observation(numbers)
                return self._seen, 0.0, False, False, {"action_mask": self.action_masks()}
            report = self._episode.report
        assert report is not None
        self._episode = None
        run = Run(report)
        reward = _number("reward", self._reward(run)) if run.complete else self._unfinished_reward
        self._seen = self._nothing.copy()
        info = {"action_mask": self.action_masks(), "seed": self._seed, "run": run}
        return self._seen, reward, run.complete, not run.complete, info

    def action_masks(self) -> NDArray[np.int8]:
        """Returns 1 for each action that is allowed: the subflows with room, and the wait."""
        mask: NDArray[np.int8] = np.ones(self.places + 1, np.int8)
        mask[:-1] = self._seen[len(CONNECTION) + _USABLE :: len(SUBFLOW)]
        return mask

    def close(self) -> None:
        """Ends the run, if there is one."""
        self._episode = None

    def _check_places(self, draft: _plait.Draft) -> None:
        """Refuses a scenario without a choice, or with subflows that have no place."""
        if _plait.Episode.paths(draft) < 2:
            # The engine makes such a run as plain TCP, whatever `subflows` says.
            raise _plait.Error("paths: one path leaves no choice, because its run is plain TCP\n  allowed: two or more paths")
        subflows = _subflows(draft)
        if subflows > self.places:
            text = f"subflows: the scenario has {subflows} of them, and the environment has {self.places} places"
            allowed = f"{self.places} subflows at most, or places={subflows} when the environment is made"
            raise _plait.Error(f"{text}\n  allowed: {allowed}")

    def _drawn(self, given: dict[str, Any] | None) -> _plait.Draft:
        """Returns the scenario of an episode."""
        if not (given is None or isinstance(given, Mapping)):
            raise _plait.Error(f"options: `{given}` is no dictionary\n  allowed: {{\"paths\": ...}}, {{\"scenario\": ...}}")
        options = dict(given or {})
        paths, scenario = options.pop("paths", ()), options.pop("scenario", None)
        if options:
            raise _plait.Error(f"options: `{next(iter(options))}`: unknown option\n  allowed: paths, scenario")
        if scenario is None:
            return filled(self._draft.copy(), paths, {})
        return draft_of(scenario, paths, self._settings)

    def _observation(self, numbers: bytes | None) -> Observation:
        if numbers is None:
            return self._nothing.copy()
        seen: Observation = np.frombuffer(numbers, np.float32).copy()
        return seen


def _refuse(settings: Mapping[str, Setting]) -> None:
    """Refuses settings of a comparison, which an episode would ignore."""
    for name in ("scheduler", "schedulers"):
        if settings.get(name) is not None:
            raise _plait.Error(f"--{name}: the agent is the scheduler\n  allowed: no scheduler; plait.run(..., scheduler=...) runs one")
    if str(settings.get("runs") or 1) != "1":
        raise _plait.Error("--runs: an episode is one run\n  allowed: reset(seed=N) for each run")
    if settings.get("seed") is not None:
        raise _plait.Error("--seed: each episode has its own seed\n  allowed: reset(seed=N)")


def _subflows(draft: _plait.Draft) -> int:
    """Returns the number of subflows that a connection of the scenario can have."""
    paths = _plait.Episode.paths(draft)
    words = shlex.split(draft.command())
    each = words[words.index("--subflows") + 1] if "--subflows" in words else "1"
    # From both paths to both addresses of the server.
    return 4 if each == "mesh4" else paths * int(each)


def _number(name: str, value: Any) -> float:
    """Returns ``value``, which is a number."""
    try:
        if not isinstance(value, (str, bytes)):
            number = float(value)
            if not math.isnan(number):
                return number
    except (TypeError, ValueError):
        pass
    raise _plait.Error(f"{name}: `{value}` is no number (it is of the type {type(value).__name__})\n  allowed: a number")


def _measure(name: str) -> Callable[[Run], float]:
    """Returns the reward of a measure."""
    page = list_measures(name)[0]["page"]
    if "neither higher nor lower is better" in page:
        raise _plait.Error(f"reward: neither higher nor lower `{name}` is better\n  allowed: another measure, or a function of the run")
    sign = 1.0 if "higher is better" in page else -1.0

    def reward(run: Run) -> float:
        if name not in run.measures:
            raise _plait.Error(f"reward: this run has no `{name}`\n  allowed: {', '.join(run.measures)}")
        return sign * run.measures[name]

    return reward


gymnasium.register(ID, entry_point="plait.gym:MultipathEnv")
