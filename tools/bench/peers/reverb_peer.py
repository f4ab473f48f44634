"""Reverb (https://pypi.org/project/dm-reverb) doing the work of a row; prints one figure.

    reverb_peer.py insert --payload B --batch K   steps per second, each an item, flushed each K
    reverb_peer.py sample --payload B --items N --batch K   bytes per second of samples

A server in this process and its own client, which then passes nothing through gRPC. A table by
priority over N steps of B random bytes, each an item of its own. Samples come by the faster of its
two ways: the client's iterator and the data set (of TensorFlow).
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy  # pylint: disable=wrong-import-position
import reverb  # pylint: disable=wrong-import-position
import tensorflow  # pylint: disable=wrong-import-position

TABLE = "replay"
SECONDS = 3.0
ROUNDS = 5


class Store:
    def __init__(self, payload, items):
        self.items = items
        signature = {"obs": tensorflow.TensorSpec([1, payload], tensorflow.uint8)}
        self.server = reverb.Server([reverb.Table(
            TABLE, sampler=reverb.selectors.Prioritized(0.6), remover=reverb.selectors.Fifo(),
            max_size=items, rate_limiter=reverb.rate_limiters.MinSize(1), signature=signature)])
        self.client = reverb.Client(f"localhost:{self.server.port}")
        random = numpy.random.default_rng(1)
        # Not the same bytes each time, nor any that compress.
        self.rows = random.integers(0, 256, (min(items, 64), payload), numpy.uint8)
        self.priorities = random.random(1024) + 1e-3

    def insert(self, count, batch):
        with self.client.trajectory_writer(num_keep_alive_refs=1) as writer:
            for i in range(count):
                writer.append({"obs": self.rows[i % len(self.rows)]})
                writer.create_item(TABLE, self.priorities[i % 1024],
                                   {"obs": writer.history["obs"][-1:]})
                if (i + 1) % batch == 0:
                    writer.flush()
            writer.flush()


def rate(work, count):
    """Calls of `work` for some seconds, of which each does `count`: how many a second."""
    rates = []
    for _ in range(ROUNDS):
        done = 0
        begin = time.perf_counter()
        while time.perf_counter() - begin < SECONDS / ROUNDS:
            work()
            done += count
        rates.append(done / (time.perf_counter() - begin))
    return statistics.median(rates)


def insert(payload, batch):
    store = Store(payload, max((256 << 20) // payload, 2 * batch))
    store.insert(batch, batch)
    return rate(lambda: store.insert(batch, batch), batch)


def sample(payload, items, batch):
    store = Store(payload, items)
    store.insert(items, 1000)

    def by_client():
        for _ in store.client.sample(TABLE, num_samples=batch, emit_timesteps=False):
            pass

    data = iter(reverb.TrajectoryDataset.from_table_signature(
        f"localhost:{store.server.port}", TABLE, max_in_flight_samples_per_worker=2 * batch)
                .batch(batch))
    by_client()
    next(data)
    return payload * max(rate(by_client, batch), rate(lambda: next(data), batch))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["insert", "sample"])
    parser.add_argument("--payload", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--items", type=int, default=100_000)
    options = parser.parse_args()
    if options.work == "insert":
        print(insert(options.payload, options.batch))
    else:
        print(sample(options.payload, options.items, options.batch))


main()
