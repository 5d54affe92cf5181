#!/usr/bin/env python3
"""Makes a Python wheel of a binary: packaging/wheel.py VERSION ARCHITECTURE LEVEL BINARY LICENCE... INTO

The binary is static, so one wheel serves glibc and musl. pip and pipx put it on PATH as it is.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

METADATA = """Metadata-Version: 2.4
Name: longtail
Version: {version}
Summary: How long do requests wait when a web server is busy, and can you trust the number?
License-Expression: MIT OR Apache-2.0
{licences}Description-Content-Type: text/markdown

longtail is a load generator and diagnosis tool for Puma and other HTTP/1.1 servers: a static binary for Linux.
"""
WHEEL = """Wheel-Version: 1.0
Generator: longtail packaging/wheel.py
Root-Is-Purelib: false
{tags}"""
# The oldest of each whose pip knows such tags; the binary asks for neither.
LIBCS = ["manylinux_2_17", "manylinux2014", "musllinux_1_1"]
# As zip files keep it, which know no time before 1980.
TIME = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]


def main(version, architecture, level, binary, *rest):
    *licences, into = rest
    platforms = [f"{libc}_{architecture}" for libc in LIBCS]
    info = f"longtail-{version}.dist-info"
    names = [pathlib.Path(licence).name for licence in licences]
    metadata = METADATA.format(
        version=version, licences="".join(f"License-File: {name}\n" for name in names)
    )
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    files = [
        (f"longtail-{version}.data/scripts/longtail", pathlib.Path(binary).read_bytes(), 0o755),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", WHEEL.format(tags=tags).encode(), 0o644),
    ]
    for licence, name in zip(licences, names):
        files.append((f"{info}/licenses/{name}", pathlib.Path(licence).read_bytes(), 0o644))
    record = "".join(f"{path},{digest(content)},{len(content)}\n" for path, content, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))
    wheel = pathlib.Path(into) / f"longtail-{version}-py3-none-{'.'.join(platforms)}.whl"
    with zipfile.ZipFile(wheel, "w", compresslevel=int(level)) as archive:
        for path, content, mode in files:
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=int(level))
    print(wheel.name)


def digest(content):
    hashed = hashlib.sha256(content).digest()
    return "sha256=" + base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()


main(*sys.argv[1:])
