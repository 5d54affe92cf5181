#!/usr/bin/env python3
"""Prints the licences of what is linked into the program: packaging/third-party-licenses.py TARGET

Each text stands once, below the crates that it is of. Where a crate may be had under several
licences, MIT is taken.
"""

import collections
import json
import pathlib
import subprocess
import sys

MUSL = """musl libc (the C library of the static binaries): Copyright 2005-2020 Rich Felker, et al.
The Rust standard library: Copyright The Rust Project Contributors."""


def linked(target):
    """The crates linked into longtail, as `cargo tree` finds them."""
    tree = ["cargo", "tree", "--locked", "--package", "longtail", "--edges", "normal,no-proc-macro"]
    lines = subprocess.check_output(
        [*tree, "--target", target, "--prefix", "none", "--format", "{p}"], text=True
    )
    return {tuple(line.split()[:2]) for line in lines.splitlines()}


def texts(folder):
    """The licence files of a crate: that of MIT where there is one, else all."""
    names = ("LICEN", "COPYING", "NOTICE")
    found = [file for file in sorted(folder.iterdir()) if file.name.upper().startswith(names)]
    of_mit = [file for file in found if "MIT" in file.name.upper()]
    return [file.read_text().strip() for file in of_mit or found if file.is_file()]


def main(target):
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    packages = json.loads(subprocess.check_output(command))["packages"]
    wanted = linked(target)
    by_text = collections.defaultdict(list)
    for package in packages:
        name = (package["name"], f"v{package['version']}")
        if package["source"] is None or name not in wanted:
            continue
        found = texts(pathlib.Path(package["manifest_path"]).parent)
        if not found:
            sys.exit(f"{' '.join(name)} ({package['license']}) has no licence file")
        for text in found:
            by_text[text].append(f"{' '.join(name)} ({package['license']})")
    mit = next(text for text in by_text if "Permission is hereby granted" in text)
    permission = mit[mit.index("Permission is hereby granted"):]
    print("longtail is made with the following software. Each licence stands below what it is of.")
    for text, crates in [*by_text.items(), (f"MIT License\n\n{MUSL}\n\n{permission}", ["musl, std"])]:
        print("\n" + "=" * 80 + "\n" + "\n".join(crates) + "\n" + "-" * 80 + "\n" + text)


main(*sys.argv[1:])
