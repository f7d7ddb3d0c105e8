"""Progress by tqdm, if it is installed and stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from plait.arguments import switch


@contextmanager
def progress_bar(wanted: bool | None) -> Iterator[Callable[[int, int], None] | None]:
    """Yields a function that takes the number of finished runs and their total; None if nothing is shown.

    If ``wanted`` is None, a terminal decides.
    """
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty()
    wanted = switch("progress", wanted)
    tqdm: Any = None
    if wanted:
        try:
            tqdm = import_module("tqdm.auto").tqdm
        except ImportError:
            pass
    if tqdm is None:
        yield None
        return
    with tqdm(unit="run", leave=False) as bar:

        def tell(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield tell
