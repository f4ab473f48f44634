#!/usr/bin/env python3
"""A second reader, by wal/FORMAT.md and engine/FORMAT.md alone, sees what `geardb head` shows.

    format_test.py EXAMPLE GEARDB FLATC      (from the root of the tree; three programs)

It reads a store that was closed, so checksums and the ring (what a crash leaves) are not looked at.
"""

import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

EXAMPLE = GEARDB = FLATC = ""
ELEMENTS = "BbHhIiQqeHfdB"  # struct's letters by dtype; bf16 as its bits.


def records(directory):
    """(body, pieces) of the data records, in the order of the log."""
    with open(f"{directory}/MANIFEST", "rb") as file:
        manifest = file.read()
    segment_bytes, = struct.unpack_from("<Q", manifest, 72)
    segments = {}
    for path in glob.glob(f"{directory}/log/segment-*"):
        with open(path, "rb") as file:
            segment = file.read()
        if struct.unpack_from("<H", segment, 40)[0] == 3:
            segments[struct.unpack_from("<Q", segment, 8)[0]] = segment
    lsn = 0
    while lsn // segment_bytes * segment_bytes in segments:
        at = lsn % segment_bytes
        segment = segments[lsn - at]
        if struct.unpack_from("<Q", segment, at + 8)[0] != lsn or not any(segment[at:at + 8]):
            return
        length, metadata, kind = struct.unpack_from("<IIH", segment, at + 32)
        if kind == 1:
            count, body = struct.unpack_from("<II", segment, at + 64)
            area = at + (64 + metadata + 15) // 16 * 16
            pieces = []
            for i in range(count):
                where, offset, size, _ = struct.unpack_from("<QIIQ", segment, at + 72 + 24 * i)
                assert where == 0, "pieces in part records are beyond this reader"
                pieces.append(segment[area + offset:area + offset + size])
            begin = at + 72 + 24 * count
            yield segment[begin:begin + body], pieces
        lsn += length


def operations(body):
    """The operations of a body, as flatc reads them by engine/operations.fbs."""
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/body.bin", "wb") as file:
            file.write(body)
        subprocess.run([FLATC, "--json", "--strict-json", "--defaults-json", "--raw-binary", "-o",
                        directory, os.path.abspath("engine/operations.fbs"), "--",
                        f"{directory}/body.bin"], check=True, stdout=subprocess.DEVNULL)
        with open(f"{directory}/body.json", encoding="utf-8") as file:
            return json.load(file)["operations"]


def values_of(column, count, piece, at):
    """(`count` rows of a column, as JSON shows them; where they end in the piece)."""
    elements = 1
    for dim in column.get("shape", []):
        elements *= dim
    row = struct.Struct(f"<{elements}{ELEMENTS[column['dtype']]}")
    rows = [row.unpack_from(piece, at + i * row.size) for i in range(count)]
    return [list(r) if column.get("shape") else r[0] for r in rows], at + count * row.size


def read(directory):
    """{table id: {slot: {id, rows}}}: rows are {column: value}, with the final row's."""
    tables, columns, steps = {}, {}, {}
    for body, pieces in records(directory):
        for operation in operations(body):
            table, change = operation["table_id"], operation["change"]
            if operation["change_type"] == "CreateTable":
                spec = change["spec"]
                tables[table], steps[table] = {}, spec["steps_per_page"]
                columns[table] = [c for c in spec["columns"] if c["kind"] == 0]
                assert not spec["stream"], "this reader has no use for flags"
            if operation["change_type"] != "Append":
                continue
            for opened in change.get("opened", []):
                tables[table][opened["slot"]] = {"id": opened["id"], "rows": [], "pages": []}
            pages = iter(change.get("pages", []))
            named = iter(zip(change["pieces"], pieces))
            for rows in change["rows"]:
                trajectory = tables[table][rows["slot"]]
                assert len(trajectory["rows"]) == rows["first_row"]
                while len(trajectory["rows"]) < rows["first_row"] + rows["count"]:
                    where, piece = next(named)
                    assert where["first"] == len(trajectory["rows"]) % steps[table]
                    if where["first"] == 0:
                        trajectory["pages"].append(next(pages)["lpn"])
                    assert where["lpn"] == trajectory["pages"][-1]
                    at, count, read_columns = 0, where["count"], {}
                    for column in columns[table]:
                        read_columns[column["name"]], at = values_of(column, count, piece, at)
                    assert at == len(piece), "a piece holds its columns and nothing else"
                    trajectory["rows"] += [{name: rows[i] for name, rows in read_columns.items()}
                                           for i in range(count)]
    return tables


class FormatTest(unittest.TestCase):
    def test_second_reader_sees_the_same_rows(self):
        with tempfile.TemporaryDirectory() as directory:
            for _ in range(2):
                subprocess.run([EXAMPLE, directory], check=True, stdout=subprocess.DEVNULL)
            (trajectories,) = read(directory).values()
            self.assertEqual(len(trajectories), 2)
            for trajectory in trajectories.values():
                shown = json.loads(subprocess.run(
                    [GEARDB, "head", directory, "replay", "--id", str(trajectory["id"]), "-n", "99",
                     "--json"], check=True, capture_output=True, text=True).stdout)
                self.assertEqual(len(trajectory["rows"]), 51)
                self.assertEqual(trajectory["rows"], [row["columns"] for row in shown["rows"]])
                self.assertEqual([row["final"] for row in shown["rows"]], [False] * 50 + [True])


if __name__ == "__main__":
    FLATC, GEARDB, EXAMPLE = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
    unittest.main()
