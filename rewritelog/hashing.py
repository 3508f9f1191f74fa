"""The hash function of this package, splitmix64, for look-ups and pseudo-random numbers.

Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, with the
constants of Vigna's splitmix64. Arithmetic is modulo 2^64, the same on every machine.
"""

from __future__ import annotations

import hashlib

import numpy as np

from rewritelog.arrays import Ints, Keys

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: the increment of splitmix64."""


def mix(keys: Keys) -> Keys:
    """Return the keys with their bits mixed, a bijection: the finaliser of splitmix64."""
    mixed: Keys = keys ^ (keys >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def sequence(count: int, start: int = 0) -> Keys:
    """Return the first `count` numbers of the splitmix64 sequence with this seed, all different."""
    return mix(np.arange(1, count + 1, dtype=np.uint64) * GOLDEN + np.uint64(start))


def draw_numbers(label: str, count: int, seed: int) -> Keys:
    """Return a pseudo-random number for each of `count` rows, all different.

    They are the splitmix64 sequence that starts at a digest of seed and label, the same on every
    machine. The rows with the smallest numbers are a random sample without replacement.
    """
    digest = hashlib.blake2b(f"{seed} {label}".encode(errors="surrogatepass"), digest_size=8)
    return sequence(count, int.from_bytes(digest.digest(), "little"))


def random_ranks(label: str, count: int, seed: int) -> Ints:
    """Return the rank of each of `count` rows in a random order, the same on every machine.

    It depends on nothing but seed, label and count.
    """
    ranks = np.empty(count, dtype=np.int64)
    ranks[np.argsort(draw_numbers(label, count, seed), kind="stable")] = np.arange(count)
    return ranks
