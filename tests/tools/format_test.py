#!/usr/bin/env python3
"""A second reader, by wal/FORMAT.md and engine/FORMAT.md alone, sees what `geardb` shows.

    format_test.py EXAMPLE KILLED_STORE GEARDB FLATC    (from the root of the tree; four programs)

It reads stores that were closed and stores whose owner was killed: checksums of the manifest, of
records and pieces, segments by their first records, the rest from the ring, records in parts. What
it leaves to others: the vouch scan, damage below what was synced, and removals.
"""

import ctypes
import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

EXAMPLE = KILLED_STORE = GEARDB = FLATC = ""
ELEMENTS = "BbHhIiQqeHfdB"  # struct's letters by dtype; bf16 as its bits.
DATA, SEGMENT, TAG, PART = 1, 3, 6, 7  # Types of records.

_XXH3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
_XXH3.restype = ctypes.c_uint64
_XXH3.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def checksum(content, seed=0):
    return _XXH3(bytes(content), len(content), seed)


class Record:
    """A record whose checksum fits: its header, body, and (LSN, offset, length, sum) of pieces."""

    def __init__(self, log, content):
        (found, self.lsn, _, term, opened, self.length, metadata, self.type, _, self.part,
         self.group, zero) = struct.unpack_from("<QQQIIIIHHIQQ", content)
        self.epoch = (term, opened)
        self.good = (64 + metadata <= self.length <= len(content) and self.length % 64 == 0
                     and zero == 0 and checksum(content[8:64 + metadata], log.seed) == found)
        self.body, self.pieces = b"", []
        if not self.good or not metadata:
            return
        count, body = struct.unpack_from("<II", content, 64)
        self.pieces = [struct.unpack_from("<QIIQ", content, 72 + 24 * i) for i in range(count)]
        self.body = content[72 + 24 * count:72 + 24 * count + body]
        self.area = content[(64 + metadata + 15) // 16 * 16:self.length]
        self.good = all(checksum(self.area[offset:offset + size], log.seed) == value
                        for where, offset, size, value in self.pieces if where == 0)


class Log:
    """The files of a log, and what is valid in them."""

    def __init__(self, directory):
        with open(f"{directory}/MANIFEST", "rb") as file:
            manifest = file.read()
        assert manifest[:8] == b"GEARDB\r\n" and len(manifest) == 80
        version, length, value = struct.unpack_from("<IIQ", manifest, 8)
        assert (version, length) == (1, 80)
        assert value == checksum(manifest[:16] + manifest[24:]), "the manifest is damaged"
        self.uuid, self.seed = manifest[24:40], checksum(manifest[24:40])
        self.epoch = struct.unpack_from("<II", manifest, 40)
        (self.start, self.cut, self.ring_bytes,
         self.segment_bytes) = struct.unpack_from("<QQQQ", manifest, 48)
        with open(f"{directory}/log/ring", "rb") as file:
            self.ring = file.read()
        assert len(self.ring) == self.ring_bytes
        self.segments = self._segments(directory)

    def _segments(self, directory):
        """Base -> bytes of the file that holds the segment."""
        found = {}
        for path in sorted(glob.glob(f"{directory}/log/segment-*")):
            if not re.fullmatch(r"segment-\d{6,}", os.path.basename(path)):
                continue
            with open(path, "rb") as file:
                content = file.read()
            first = Record(self, content)
            if not first.good or first.type != SEGMENT or first.lsn % self.segment_bytes:
                continue
            assert first.body == self.uuid, "a segment of another database"
            base, epoch = first.lsn, first.epoch
            if base >= self.start and epoch != self.epoch or epoch > self.epoch:
                continue
            if base not in found or found[base][0] < epoch:
                found[base] = (epoch, content)
        return {base: content for base, (_, content) in found.items()}

    def _valid(self, content, lsn):
        """The record at the front of `content`, if it is that of this LSN."""
        if len(content) < 64:
            return None
        record = Record(self, content)
        of_epoch = record.epoch == self.epoch if lsn >= self.start else record.epoch <= self.epoch
        return record if record.good and record.lsn == lsn < self.cut and of_epoch else None

    def records(self):
        """(record, whether it is from the ring) in the order of the log."""
        lsn, in_ring = 0, False
        while True:
            at, record = lsn % self.segment_bytes, None
            if not in_ring:
                record = self._valid(self.segments.get(lsn - at, b"")[at:], lsn)
                assert record or lsn >= self.start, "the ring never helps below start"
                in_ring = record is None
            if in_ring:
                turn = lsn % self.ring_bytes
                content = self.ring[turn:] + self.ring[:turn]
                record = self._valid(content[:self.segment_bytes - at], lsn)
            if record is None:
                return
            yield record, in_ring
            lsn += record.length

    def bodies(self):
        """(LSN, body, pieces, whether in parts) of data and tag records; the LSN is that of the
        final record of those in parts."""
        areas = {}
        for record, _ in self.records():
            if record.type == PART:
                areas[record.lsn] = record
            if record.type not in (DATA, TAG):
                continue
            pieces = []
            for where, offset, size, value in record.pieces:
                held = record if where == 0 else areas[where]
                assert held.group == record.group or where == 0
                piece = held.area[offset:offset + size]
                assert checksum(piece, self.seed) == value
                pieces.append(piece)
            if record.group:
                parts = sorted(part.part for part in areas.values() if part.group == record.group)
                assert [*parts, record.part] == list(range(len(parts) + 1))
            yield record.lsn, record.body, pieces, record.group != 0


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


def default_of(column):
    """What each element of a row is that nobody wrote, in the shape of the column."""
    value = column["default_value"]
    if ELEMENTS[column["dtype"]] not in "efd":
        value = int(value)
    for dim in reversed(column.get("shape", [])):
        value = [value] * dim
    return value


class Table:
    """The trajectories of a table: {slot: trajectory}, and what their pages hold in each group."""

    def __init__(self, spec):
        assert not spec["stream"], "this reader has no use for flags"
        self.name = spec["name"]
        self.steps = spec["steps_per_page"]
        self.columns = [column for column in spec["columns"] if column["kind"] == 0]
        self.groups = [{}, *spec.get("groups", [])]  # The first has no entry.
        self.appended = []  # After each number of changes of the columns: the groups in appends.
        self._note_appended()
        self.trajectories = {}
        self.held = {}  # (lpn, group) -> rows of the page from its first on.
        self.newest = {}  # (lpn, group) -> LSN of its newest piece.
        self.patches = self.patches_in_parts = self.old_appends = 0
        self.batches = self.batches_in_parts = 0  # Written together with other tables.

    def _note_appended(self):
        there = {column["group"] for column in self.columns if not column.get("dropped")}
        self.appended.append([number for number, group in enumerate(self.groups)
                              if number in there and not group.get("late")
                              and not group.get("is_volatile")])

    def add_columns(self, change):
        self.groups += change.get("groups", [])
        self.columns += [dict(column, later=True) for column in change["columns"]
                         if column["kind"] == 0]
        self._note_appended()

    def drop_columns(self, change):
        for column in self.columns:
            if not column.get("dropped"):
                column["dropped"] = int(column["name"] in change["names"])
        self._note_appended()

    def append(self, lsn, change, pieces):
        for opened in change.get("opened", []):
            self.trajectories[opened["slot"]] = {"id": opened["id"], "end": 0, "pages": [],
                                                 "generation": opened["generation"], "filled": {}}
        appended = self.appended[change["column_changes"]]
        self.old_appends += change["column_changes"] + 1 < len(self.appended)
        pages = iter(change.get("pages", []))
        named = iter(zip(change["pieces"], pieces))
        for rows in change["rows"]:
            trajectory = self.trajectories[rows["slot"]]
            assert trajectory["end"] == rows["first_row"]
            while trajectory["end"] < rows["first_row"] + rows["count"]:
                offset = trajectory["end"] % self.steps
                if offset == 0:
                    trajectory["pages"].append(next(pages))
                left = rows["first_row"] + rows["count"] - trajectory["end"]
                count = min(self.steps - offset, left)
                for group in appended:
                    where, piece = next(named)
                    assert (where["first"], where["count"]) == (offset, count)
                    assert where["group"] == group
                    assert where["lpn"] == trajectory["pages"][-1]["lpn"]
                    self._take(lsn, where, piece)
                trajectory["end"] += count
        assert next(named, None) is None and next(pages, None) is None

    def patch(self, lsn, change, pieces):
        """Pages written anew; late groups are filled up to their `filled`."""
        self.patches += 1
        owner = {page["lpn"]: (slot, page["generation"], number)
                 for slot, trajectory in self.trajectories.items()
                 for number, page in enumerate(trajectory["pages"])}
        filled = {}
        for patched in change["patched"]:
            trajectory = self.trajectories[patched["slot"]]
            group = patched["group"]
            assert trajectory["generation"] == patched["generation"]
            assert not self.groups[group].get("is_volatile"), "it has nothing in the log"
            filled[patched["slot"], group] = trajectory["end"]
            if self.groups[group].get("late"):
                trajectory["filled"][group] = max(patched["filled"],
                                                  trajectory["filled"].get(group, 0))
                filled[patched["slot"], group] = trajectory["filled"][group]
        assert len(change["pieces"]) == len(pieces)
        for where, piece in zip(change["pieces"], pieces):
            slot, generation, number = owner[where["lpn"]]
            assert generation == where["generation"] and where["first"] == 0
            held = filled[slot, where["group"]] - number * self.steps
            assert where["count"] == min(held, self.steps), "a page is written whole"
            self.newest.pop((where["lpn"], where["group"]), None)
            self.held.pop((where["lpn"], where["group"]), None)
            self._take(lsn, where, piece)

    def _take(self, lsn, where, piece):
        """One piece: rows of one page in one group."""
        place = (where["lpn"], where["group"])
        assert where["previous_lsn"] == self.newest.get(place, 2**64 - 1)
        self.newest[place] = lsn
        at, count, read = 0, where["count"], {}
        for number, column in enumerate(self.columns):
            if column["group"] == where["group"]:
                read[number], at = values_of(column, count, piece, at)
        assert at == len(piece), "a piece holds its columns and nothing else"
        held = self.held.setdefault(place, [])
        came_later = where["group"] not in {column["group"] for column in self.columns
                                            if not column.get("later")}
        assert where["first"] == len(held) or came_later and where["first"] > len(held)
        held += [{} for _ in range(where["first"] - len(held))]  # Nobody knew it.
        held += [{number: rows[i] for number, rows in read.items()} for i in range(count)]

    def rows(self, trajectory):
        """The rows of a trajectory, each {column: value}; what nobody wrote has its default."""
        unwritten = {number: default_of(column) for number, column in enumerate(self.columns)}
        shown = []
        for row in range(trajectory["end"]):
            values = dict(unwritten)
            for number, group in enumerate(self.groups):
                held = self.held.get((trajectory["pages"][row // self.steps]["lpn"], number), [])
                written = trajectory["filled"].get(number, 0) if group.get("late") else row + 1
                if row >= written or group.get("is_volatile") or row % self.steps >= len(held):
                    continue
                values.update(held[row % self.steps])
            shown.append({column["name"]: values[number]
                          for number, column in enumerate(self.columns)
                          if not column.get("dropped")})
        return shown


def tables_of(log):
    """{table id: Table}."""
    tables = {}
    for lsn, body, pieces, in_parts in log.bodies():
        together = operations(body)
        for operation in together:
            change = operation["change"]
            if operation["change_type"] == "CreateTable":
                tables[operation["table_id"]] = Table(change["spec"])
            if operation["change_type"] == "Append":
                table = tables[operation["table_id"]]
                # Several operations have their pieces one after the other.
                count = len(change["pieces"])
                table.append(lsn, change, pieces[:count])
                pieces = pieces[count:]
                table.batches += len(together) > 1
                table.batches_in_parts += len(together) > 1 and in_parts
            if operation["change_type"] == "AddColumns":
                tables[operation["table_id"]].add_columns(change)
            if operation["change_type"] == "DropColumns":
                tables[operation["table_id"]].drop_columns(change)
            if operation["change_type"] == "Patch":
                table = tables[operation["table_id"]]
                table.patch(lsn, change, pieces)
                table.patches_in_parts += in_parts
    return tables


def audits_of(log):
    """What hand-overs of audited samplers say, as (LSN, draw number, audit)."""
    found = []
    for lsn, body, _, _ in log.bodies():
        for operation in operations(body):
            if operation["change_type"] == "HandOver" and "audit" in operation["change"]:
                found.append((lsn, operation["change"]["draw_number"],
                              operation["change"]["audit"]))
    return found


def geardb(*words):
    """What geardb says, as JSON."""
    return json.loads(subprocess.run([GEARDB, *words, "--json"], check=True, capture_output=True,
                                     text=True).stdout)


class FormatTest(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.store = os.path.join(made.name, "store")

    def kill(self):
        """A life of the store that ends by SIGKILL."""
        died = subprocess.run([KILLED_STORE, self.store], check=False, capture_output=True)
        self.assertEqual(died.returncode, -signal.SIGKILL, died.stderr)

    def assert_records_agree(self):
        """Both readers see the same records; returns (record, whether from the ring) of each."""
        seen = list(Log(self.store).records())
        shown = geardb("log", self.store, "-n", "0")
        self.assertEqual([(record.lsn, record.length, record.epoch, in_ring)
                          for record, in_ring in seen],
                         [(record["lsn"], record["length"], (record["term"], record["open"]),
                           record["from_ring"]) for record in shown["records"]])
        self.assertEqual(seen[-1][0].lsn + seen[-1][0].length, shown["log_end"])
        return seen

    def assert_rows_agree(self):
        """Both readers see the same rows; returns how many trajectories, patches, and of these in
        parts there are in the first table."""
        first, *others = tables_of(Log(self.store)).values()
        for other in others:
            self.assert_rows_of_table_agree(other, final=False)
        for table in (first, *others):
            shown = [column["compression"] for one in geardb("info", self.store)["tables"]
                     for column in one["columns"]
                     if one["name"] == table.name and column["kind"] == "per_step"]
            names = ["lz4", "none", "zstd", "xor_delta"]
            self.assertEqual(shown, [names[column.get("compression", 0)]
                                     for column in table.columns if not column.get("dropped")])
        return self.assert_rows_of_table_agree(first, final=True)

    def assert_rows_of_table_agree(self, table, final):
        listed = geardb("head", self.store, table.name, "-n", "9999")["shown"]
        self.assertEqual(sorted(read["id"] for read in table.trajectories.values()),
                         sorted(one["id"] for one in listed))
        for read in table.trajectories.values():
            shown = geardb("head", self.store, table.name, "--id", str(read["id"]), "-n", "9999")
            self.assertEqual(table.rows(read), [row["columns"] for row in shown["rows"]])
            finals = [row["final"] for row in shown["rows"]]
            self.assertEqual(finals, [False] * (len(finals) - 1) + [final])
        return len(listed), table.patches, table.patches_in_parts, table.old_appends

    def test_second_reader_sees_the_same_rows_of_a_closed_store(self):
        for _ in range(2):
            subprocess.run([EXAMPLE, self.store], check=True, stdout=subprocess.DEVNULL)
        self.assert_records_agree()
        self.assertEqual(self.assert_rows_agree(), (2, 0, 0, 0))

    def test_second_reader_sees_what_a_killed_store_has_in_ring_and_segments(self):
        for life in (1, 2):
            self.kill()
            seen = self.assert_records_agree()
            self.assertTrue(seen[-1][1], "nothing was left in the ring")
            self.assertIn(PART, {record.type for record, _ in seen})
            self.assertGreater(len(Log(self.store).segments), 1)
            self.assertEqual(self.assert_rows_agree(), (48 * life, 8 * life, life, 21 * life))
            for table in tables_of(Log(self.store)).values():
                self.assertEqual((table.batches, table.batches_in_parts), (2 * life, life))

    def test_audits_say_the_same_to_both(self):
        self.kill()
        seen = audits_of(Log(self.store))
        shown = [(record["lsn"], operation["audit"])
                 for record in geardb("log", self.store, "-n", "0")["records"]
                 for operation in record["operations"] if "audit" in operation]
        self.assertEqual(len(seen), 6)
        self.assertEqual([lsn for lsn, _, _ in seen], [lsn for lsn, _ in shown])
        for (_, draw, one), (_, other) in zip(seen, shown):
            self.assertEqual(other["sampler"], "second")
            self.assertEqual((draw, one["seed"]), (other["draw"], 11))
            for field in ("sampler", "seed", "drawn_lsn", "handed_us", "first_draw"):
                self.assertEqual(one[field], other[field])
            self.assertEqual(len(one["rows"]), 5)
            for mine, theirs in zip(one["rows"], other["rows"]):
                for field in ("trajectory", "anchor", "draw_row", "priority"):
                    self.assertEqual(mine[field], theirs[field])
                self.assertAlmostEqual(mine["probability"], theirs["probability"], 10)

    def test_a_bit_in_the_ring_ends_the_log_for_both(self):
        self.kill()
        log = Log(self.store)
        from_ring = [record for record, in_ring in log.records() if in_ring]
        ring = f"{self.store}/log/ring"
        whole = shutil.copy(ring, f"{self.store}-ring")
        last = from_ring[-1]
        with_pieces = [record for record in from_ring if record.type == DATA and record.pieces][-1]
        piece = with_pieces.length - len(with_pieces.area) + with_pieces.pieces[0][1]
        for record, offset in ((last, 0), (last, 17), (last, 63), (with_pieces, 70),
                               (with_pieces, piece)):
            with self.subTest(lsn=record.lsn, offset=offset):
                shutil.copy(whole, ring)
                with open(ring, "r+b") as file:
                    file.seek((record.lsn + offset) % log.ring_bytes)
                    (byte,) = file.read(1)
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([byte ^ 4]))
                seen = self.assert_records_agree()
                self.assertEqual(seen[-1][0].lsn + seen[-1][0].length, record.lsn)

    def test_a_bit_in_the_manifest_is_damage_for_both(self):
        self.kill()
        with open(f"{self.store}/MANIFEST", "r+b") as file:
            file.seek(60)
            file.write(b"\x01")
        with self.assertRaisesRegex(AssertionError, "the manifest is damaged"):
            Log(self.store)
        said = subprocess.run([GEARDB, "log", self.store], check=False, capture_output=True)
        self.assertIn(b"MANIFEST is damaged", said.stderr)


if __name__ == "__main__":
    FLATC, GEARDB, KILLED_STORE, EXAMPLE = (sys.argv.pop() for _ in range(4))
    unittest.main()
