#!/usr/bin/env python3
"""Runs the commands of docs/tutorial.md in a fresh directory, and compares their output.

    test/tutorial.py PROGRAM CAIRN SCRATCH

In blocks of the language `console` a line that begins with "$ " is a command, and the lines up to the next one are its
standard output. `./tutorial` is PROGRAM, the page's C++ program, and `cairn` is CAIRN. Times and bytes of the log may
differ.
"""

import difflib
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

TUTORIAL = pathlib.Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"


def commands(text: str) -> list[tuple[str, list[str]]]:
    """The commands of the page in order, and the output lines of each."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def comparable(lines: list[str]) -> list[str]:
    return [re.sub(r"\d+ B of log", "N B of log", re.sub(r"\d+\.\d+ s$", "T s", line.rstrip())) for line in lines]


def main(program: str, cairn: str, scratch: str) -> int:
    shutil.rmtree(scratch, ignore_errors=True)
    pathlib.Path(scratch).mkdir(parents=True)
    programs = {"./tutorial": program, "cairn": cairn}
    found = commands(TUTORIAL.read_text())
    assert {shlex.split(command)[0] for command, _ in found} == set(programs), "a kind of command is missing"
    for command, expected in found:
        name, *arguments = shlex.split(command)
        done = subprocess.run([programs[name], *arguments], cwd=scratch, capture_output=True, text=True, check=False)
        printed = comparable(done.stdout.splitlines())
        if done.returncode != 0 or printed != comparable(expected):
            print(f"$ {command}\nexit status {done.returncode}\n{done.stderr}", end="")
            print("\n".join(difflib.unified_diff(comparable(expected), printed, "tutorial.md", "printed", lineterm="")))
            return 1
    shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
