"""cpprb (https://pypi.org/project/cpprb) doing the work of a row; prints one figure.

    cpprb_peer.py sample --items N            median microseconds of a sample of 256 with weights
    cpprb_peer.py update --items N            median microseconds of an update of 256 priorities
    cpprb_peer.py insert --payload B --batch K   bytes per second of batched inserts
"""

import argparse
import statistics
import time

import numpy
from cpprb import PrioritizedReplayBuffer

BATCH = 256
ROUNDS = 300
TABLE_BYTES = 256 << 20
BURST_BYTES = 24 << 20
CHUNK = 100_000


def filled(items):
    """A full buffer of steps of 4 bytes with random priorities."""
    buffer = PrioritizedReplayBuffer(items, {"obs": {"dtype": numpy.float32}}, alpha=0.6)
    random = numpy.random.default_rng(1)
    for begin in range(0, items, CHUNK):
        count = min(CHUNK, items - begin)
        buffer.add(obs=numpy.ones(count, numpy.float32),
                   priorities=random.random(count) + 1e-3)
    return buffer


def sample(items):
    buffer = filled(items)
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        buffer.sample(BATCH, beta=0.4)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def update(items):
    buffer = filled(items)
    random = numpy.random.default_rng(2)
    times = []
    for _ in range(ROUNDS):
        indexes = buffer.sample(BATCH, beta=0.4)["indexes"]
        priorities = random.random(BATCH) + 1e-3
        begin = time.perf_counter()
        buffer.update_priorities(indexes, priorities)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def insert(payload, batch):
    capacity = max(TABLE_BYTES // payload, batch)
    buffer = PrioritizedReplayBuffer(
        capacity, {"obs": {"dtype": numpy.uint8, "shape": payload}}, alpha=0.6)
    rows = numpy.ones((batch, payload), numpy.uint8)
    calls = max(BURST_BYTES // (payload * batch), 1)
    for _ in range(capacity // batch):
        buffer.add(obs=rows)
    rates = []
    for _ in range(11):
        begin = time.perf_counter()
        for _ in range(calls):
            buffer.add(obs=rows)
        rates.append(calls * batch * payload / (time.perf_counter() - begin))
    return statistics.median(rates)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["sample", "update", "insert"])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--payload", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1000)
    options = parser.parse_args()
    if options.work == "sample":
        print(sample(options.items))
    elif options.work == "update":
        print(update(options.items))
    else:
        print(insert(options.payload, options.batch))


main()
