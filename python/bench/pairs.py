"""The argument of the benchmarks in this directory."""

import argparse


def asked(description, default):
    """Returns the number of pairs of the command line, at least 1."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("pairs", nargs="?", type=int, default=default, help="number of pairs, at least 1 (default: %(default)s)")
    pairs = parser.parse_args().pairs
    if pairs < 1:
        parser.error(f"pairs is {pairs}, but at least 1 is needed")
    return pairs
