#!/usr/bin/python3
"""terminal.py COLUMNSxROWS COMMAND...: runs it in a terminal and does what its input says, a line a step:

    wait TEXT        until the screen shows it          gone TEXT   until it does not
    match REGEX      until one of its lines does
    key NAME         enter escape up down space, or characters
    resize CxR       the terminal gets another size     hangup      it goes away
    signal NAME      to the command                     ends N      it has ended, with this status (or -SIGNAL)
    show             prints the screen                  svg FILE    draws it
    fits             no line is longer than the screen is wide, and the cursor is on it

What cannot be had within 20 s fails, and shows the screen.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

import pyte

PATIENCE = 20
KEYS = {"enter": "\r", "escape": "\x1b", "up": "\x1b[A", "down": "\x1b[B", "space": " "}


class Terminal:
    def __init__(self, size, command):
        columns, rows = (int(n) for n in size.split("x"))
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.fd = pty.fork()
        self.status = None
        if self.pid == 0:
            # The size is there before the command looks.
            self.set_size(0, columns, rows)
            os.execvp(command[0], command)
        self.set_size(self.fd, columns, rows)

    @staticmethod
    def set_size(fd, columns, rows):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, patience):
        """What comes within that time; False at the end."""
        if self.fd is None:
            time.sleep(patience)
            return False
        if not select.select([self.fd], [], [], patience)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.stream.feed(data)
        return bool(data)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, what, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            alive = self.read(0.05)
            if condition():
                return
            if time.monotonic() > deadline or (not alive and not what.startswith("ends")):
                print(f"not seen: {what}\n{self.text()}")
                sys.exit(1)

    def fits(self):
        return self.screen.cursor.y < self.screen.lines and all(len(s) <= self.screen.columns for s in self.screen.display)

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def step(self, word, rest):
        if word == "wait":
            self.until(f"wait {rest}", lambda: rest in self.text())
        elif word == "match":
            self.until(f"match {rest}", lambda: re.search(rest, self.text(), re.MULTILINE))
        elif word == "gone":
            self.until(f"gone {rest}", lambda: rest not in self.text())
        elif word == "key":
            os.write(self.fd, KEYS.get(rest, rest).encode())
        elif word == "resize":
            columns, rows = (int(n) for n in rest.split("x"))
            self.screen.resize(rows, columns)
            self.set_size(self.fd, columns, rows)
        elif word == "hangup":
            os.close(self.fd)
            self.fd = None
        elif word == "signal":
            os.kill(self.pid, getattr(signal, rest))
        elif word == "ends":
            self.until("ends", self.ended)
            if self.status != int(rest):
                print(f"ended with {self.status}, not {rest}\n{self.text()}")
                sys.exit(1)
        elif word == "show":
            print(self.text())
        elif word == "svg":
            with open(rest, "w") as f:
                f.write(svg(self.screen))
        elif word == "fits":
            self.until("fits", self.fits)
        else:
            sys.exit(f"terminal.py: no step {word}")


COLOURS = {"red": "#ff7b72", "brown": "#e3b341", "yellow": "#e3b341", "default": "#e6e9ee"}


def svg(screen):
    """The screen as a picture, with letters that are letters."""
    wide, high = 8.4, 19
    width, height = screen.columns * wide + 24, screen.lines * high + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-size="14" '
        'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace">',
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#14171c"/>',
    ]
    for y in range(screen.lines):
        row, x = screen.buffer[y], 0
        while x < screen.columns:
            look = row[x]
            key = (look.fg, look.bold, look.reverse)
            end = x
            while end < screen.columns and (row[end].fg, row[end].bold, row[end].reverse) == key:
                end += 1
            text = "".join(row[i].data for i in range(x, end))
            ink = COLOURS.get(look.fg, COLOURS["default"])
            left, top = 12 + x * wide, 12 + y * high
            if look.reverse:
                out.append(f'<rect x="{left:.1f}" y="{top}" width="{(end - x) * wide:.1f}" height="{high}" fill="{ink}"/>')
                ink = "#14171c"
            if text.strip():
                lead = len(text) - len(text.lstrip())
                text = text.strip()
                bold = ' font-weight="bold"' if look.bold else ""
                safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
                out.append(
                    f'<text x="{left + lead * wide:.1f}" y="{top + 14}" fill="{ink}" xml:space="preserve" '
                    f'textLength="{len(text) * wide:.1f}"{bold}>{safe}</text>'
                )
            x = end
    return "\n".join(out + ["</svg>", ""])


def main():
    terminal = Terminal(sys.argv[1], sys.argv[2:])
    try:
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            if word:
                terminal.step(word, rest)
    finally:
        if not terminal.ended():
            os.kill(terminal.pid, signal.SIGKILL)
            os.waitpid(terminal.pid, 0)


if __name__ == "__main__":
    main()
