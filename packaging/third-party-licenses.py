#!/usr/bin/env python3
"""Prints the licences of what is linked into the program: packaging/third-party-licenses.py TARGET

Each text stands once, below the crates that it is of. Where a crate may be had under several
licences, MIT is taken.
"""

import collections
import pathlib
import sys

import crates

MUSL = """musl libc (the C library of the static binaries): Copyright 2005-2020 Rich Felker, et al.
The Rust standard library: Copyright The Rust Project Contributors."""


def texts(folder):
    """The licence files of a crate: that of MIT where there is one, else all."""
    names = ("LICEN", "COPYING", "NOTICE")
    found = [file for file in sorted(folder.iterdir()) if file.name.upper().startswith(names)]
    of_mit = [file for file in found if "MIT" in file.name.upper()]
    return [file.read_text().strip() for file in of_mit or found if file.is_file()]


def main(target):
    by_text = collections.defaultdict(list)
    for package in crates.linked(target):
        name = f"{package['name']} v{package['version']}"
        found = texts(pathlib.Path(package["manifest_path"]).parent)
        if not found:
            sys.exit(f"{name} ({package['license']}) has no licence file")
        for text in found:
            by_text[text].append(f"{name} ({package['license']})")
    mit = next(text for text in by_text if "Permission is hereby granted" in text)
    permission = mit[mit.index("Permission is hereby granted"):]
    print("longtail is made with the following software. Each licence stands below what it is of.")
    for text, of in [*by_text.items(), (f"MIT License\n\n{MUSL}\n\n{permission}", ["musl, std"])]:
        print("\n" + "=" * 80 + "\n" + "\n".join(of) + "\n" + "-" * 80 + "\n" + text)


main(*sys.argv[1:])
