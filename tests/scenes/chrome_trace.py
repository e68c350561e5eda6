#!/usr/bin/env python3
"""chrome_trace.py FILE: is it what Chrome's trace viewer and Perfetto read? Every event has what its phase needs, times are
sane, and the complete events of one thread contain each other or do not meet."""
import json
import sys

NEEDS = {"M": ("name", "pid", "tid", "args"), "X": ("name", "cat", "ts", "dur", "pid", "tid"),
         "i": ("name", "ts", "pid", "tid", "s"), "C": ("name", "ts", "pid", "args")}

with open(sys.argv[1], encoding="utf-8") as f:
    trace = json.load(f)
assert trace["displayTimeUnit"] in ("ms", "ns")
tracks = {}
for e in trace["traceEvents"]:
    for field in NEEDS[e["ph"]]:
        assert field in e, f"{field} is missing: {e}"
    assert e.get("ts", 0) >= 0 and e.get("dur", 0) >= 0, e
    if e["ph"] == "X":
        tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], -e["dur"], e["name"]))
    if e["ph"] == "C":
        assert e["args"]["waiting"] >= 0, e
for (pid, tid), spans in tracks.items():
    if pid == 1 << 22:
        continue  # gates: whoever is let in is in another track; what a hostile file says may overlap
    open_until = []
    for ts, dur, name in sorted(spans):
        digits = 0.002 + (ts - dur) * 1e-14  # as many as are written
        while open_until and open_until[-1] <= ts + digits:
            open_until.pop()
        assert not open_until or ts - dur <= open_until[-1] + digits, f"thread {tid}: {name} at {ts} leaves what it is in"
        open_until.append(ts - dur)
