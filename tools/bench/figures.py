#!/usr/bin/env python3
"""Writes the figures of a results file between the README's marks.

    tools/bench/figures.py tools/bench/results/<file>.json
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->"


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


def line(row):
    if "error" in row:
        return f"| {row['row']} | {sizes(row)} | not measured | | | | |"
    ratio = ""
    ceiling = ""
    if "ratio" in row:
        low, high = row["ratio"]["quartiles"]
        ratio = f"{percent(row['ratio']['median'])} ({percent(low)} to {percent(high)})"
        ceiling = with_unit(row["ceiling"]["median"], row["unit"])
    target = row["target"].replace(">=", "≥").replace("<=", "≤")
    if "reached" in row:
        target += ": reached" if row["reached"] else ": **missed**"
    peer = with_unit(row["cpprb"], row["unit"]) if "cpprb" in row else ""
    value = with_unit(row["value"]["median"], row["unit"])
    return f"| {row['row']} | {sizes(row)} | {value} | {ceiling} | {ratio} | {target} | {peer} |"


def is_told(row):
    """The README shows rows with a target or a peer; the results file has all."""
    return "reached" in row or "cpprb" in row or "error" in row


def section(results, path):
    machine = results["machine"]
    void = any(row.get("void") for row in results["rows"])
    text = [
        "Taken with `tools/dev bench` on "
        f"{machine['processors']} cores of {machine['processor']}, "
        f"{machine['memory_bytes'] >> 30} GiB, {machine['file_system']}: each figure beside its "
        "ceiling (a bare loop doing what cannot be left out) measured in the same repetition; "
        "medians, and the quartiles of the ratio. "
        "All rows, and what each row and each ceiling is, stand in "
        f"[{os.path.basename(path)}]({path}).",
        "",
    ]
    if void:
        text += ["**Void**: a compiler was running beside some of these rows.", ""]
    text += ["| row | size | GearDB | ceiling | of the ceiling | target | cpprb |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    text += [line(row) for row in results["rows"] if is_told(row)]
    return "\n".join(text) + "\n"


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    readme = os.path.join(ROOT, "README.md")
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    with open(readme, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + section(results, os.path.relpath(path, ROOT)) + END + after)


main()
