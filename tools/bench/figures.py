#!/usr/bin/env python3
"""Writes the figures of a results file between the README's marks, beside those of others.

    tools/bench/figures.py [--whole] tools/bench/results/<file>.json [.../<other>.json...]

With --whole between those of the whole store, whose rows take other runs.
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MARKS = ("<!-- figures: begin -->\n", "<!-- figures: end -->")
WHOLE_MARKS = ("<!-- figures of the whole store: begin -->\n",
               "<!-- figures of the whole store: end -->")


def rounded(value):
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


def with_unit(value, unit):
    """12340000000, "B/s" -> "12.3 GB/s"."""
    if unit not in ("B/s", "1/s"):
        return f"{rounded(value)} {unit}"
    for prefix in ("", "k", "M", "G"):
        if abs(value) < 1000 or prefix == "G":
            return f"{rounded(value)} {prefix}{'B/s' if unit == 'B/s' else '/s'}"
        value /= 1000
    return ""


def percent(ratio):
    return f"{rounded(100 * ratio)} %"


def sizes(row):
    return f"{row['size']:,}".replace(",", "\u202f") + " " + row["size_of"]


def peer_of(row):
    """The name of the peer that was measured beside a row, and its figure."""
    for name in ("cpprb", "reverb"):
        if name in row:
            return name, row[name]
    return None, None


def is_ahead(peer, own, unit):
    """Of times the shorter, of rates the larger."""
    return peer > own if unit.endswith("/s") else peer < own


def in_short(row):
    """What a row came to on another machine: the number that its target is about."""
    if row is None or "value" not in row:
        return "not measured"
    if "reached" not in row:
        return with_unit(row["value"]["median"], row["unit"])
    of_ceiling = "ratio" in row and ("%" in row["target"] or " x" in row["target"])
    text = (percent(row["ratio"]["median"]) if of_ceiling
            else with_unit(row["value"]["median"], row["unit"]))
    return text if row["reached"] else f"**{text}**"


def line(row, others):
    short = "".join(f" {in_short(found)} |" for found in others)
    if "error" in row:
        return f"| {row['row']} | {sizes(row)} | not measured | | | | |{short}"
    ratio = ""
    ceiling = ""
    if "ratio" in row:
        low, high = row["ratio"]["quartiles"]
        ratio = f"{percent(row['ratio']['median'])} ({percent(low)} to {percent(high)})"
        ceiling = with_unit(row["ceiling"]["median"], row["unit"])
    target = row["target"].replace(">=", "≥").replace("<=", "≤")
    if "reached" in row:
        target += ": reached" if row["reached"] else ": **missed**"
    if "growth" in row:
        target = f"{rounded(row['growth'])} x the smallest size"
        if "flag" in row:
            target += f": **{row['flag']}**"
    peer, figure = peer_of(row)
    if peer:
        ahead = is_ahead(figure, row["value"]["median"], row["unit"])
        peer = f"{peer} {with_unit(figure, row['unit'])}"
        if ahead:
            peer = f"**{peer}**"
    value = with_unit(row["value"]["median"], row["unit"])
    cells = [row["row"], sizes(row), value, ceiling, ratio, target, peer or ""]
    return "| " + " | ".join(cells) + f" |{short}"


def is_told(row, rows):
    """The README shows rows with a target or a peer, what is flagged, and of rows that must not
    grow with their size the largest; the results file has all."""
    if "reached" in row or peer_of(row)[0] or "error" in row or "flag" in row or row.get("told"):
        return True
    return "growth" in row and row["size"] == max(
        other["size"] for other in rows if other["row"] == row["row"])


def machine_text(results):
    machine = results["machine"]
    return (f"{machine['processors']} cores of {machine['processor']}, "
            f"{machine['memory_bytes'] >> 30} GiB, {machine['file_system']}")


def section(results, path, others):
    files = [(results, path)] + others
    text = [
        f"Taken with `tools/dev bench` on {machine_text(results)}: each figure beside its "
        "ceiling (a bare loop doing what cannot be left out) measured in the same repetition; "
        "medians, and the quartiles of the ratio; a peer's figure is bold where it is ahead. ",
    ]
    if others:
        machines = "; ".join(machine_text(found) for found, _ in others)
        text[0] += (f"In the last columns, what the target is about, on {machines}; bold where "
                    "it is missed. ")
    text[0] += ("All rows, and what each row and each ceiling is, stand in "
                + " and ".join(f"[{os.path.basename(name)}]({name})" for _, name in files) + ".")
    text += [""]
    if any(row.get("void") for found, _ in files for row in found["rows"]):
        text += ["**Void**: a compiler was running beside some of these rows.", ""]
    heads = "".join(f" {found['machine']['processors']} cores, "
                    f"{found['machine']['processor'].split()[0]} |" for found, _ in others)
    text += ["| row | size | GearDB | ceiling | of the ceiling | target | peer |" + heads,
             "| --- | --- | --- | --- | --- | --- | --- |" + " --- |" * len(others)]
    tables = [{(row["row"], row["size"]): row for row in found["rows"]} for found, _ in others]
    for row in results["rows"]:
        if is_told(row, results["rows"]):
            text.append(line(row, [table.get((row["row"], row["size"])) for table in tables]))
    return "\n".join(text) + "\n"


def main():
    files = []
    paths = sys.argv[1:]
    begin, end = MARKS
    if paths[:1] == ["--whole"]:
        begin, end = WHOLE_MARKS
        del paths[0]
    for path in paths:
        with open(path, encoding="utf-8") as file:
            files.append((json.load(file), os.path.relpath(path, ROOT)))
    readme = os.path.join(ROOT, "README.md")
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(begin)
    _, after = rest.split(end)
    text = before + begin + section(*files[0], files[1:]) + end + after
    with open(readme, "w", encoding="utf-8") as file:
        file.write(text)


main()
