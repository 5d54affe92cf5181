#!/usr/bin/env python3
"""Prints what is in a binary, as CycloneDX 1.6: packaging/sbom.py VERSION TARGET BINARY

The crates that are linked in, each with its licence and the checksum of its source; Rust's standard
library and, in a static binary, the musl that it brings.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid

import crates


def checksums():
    """The SHA-256 of each crate's source, from Cargo.lock."""
    lock = tomllib.loads(pathlib.Path("Cargo.lock").read_text())
    return {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def component(package, checksum):
    reference = f"pkg:cargo/{package['name']}@{package['version']}"
    return {
        "type": "library",
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        # Some still write "/" for "or".
        "licenses": [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}],
        "hashes": [{"alg": "SHA-256", "content": checksum}],
        "purl": reference,
    }


def of_the_compiler(target):
    """What the compiler brings, which has the compiler's own version."""
    version = subprocess.check_output(["rustc", "--version"], text=True).split()[1]
    found = [("rust-std", "MIT OR Apache-2.0", "The Rust standard library")]
    if target.endswith("-musl"):
        found.append(("musl", "MIT", f"The C library, as Rust {version} brings it"))
    return [
        {
            "type": "library",
            "bom-ref": f"{name}@rust-{version}",
            "name": name,
            "version": f"rust-{version}",
            "description": description,
            "licenses": [{"expression": licence}],
        }
        for name, licence, description in found
    ]


def main(version, target, binary):
    sums = checksums()
    found = [
        component(package, sums[package["name"], package["version"]])
        for package in crates.linked(target)
    ]
    found += of_the_compiler(target)
    digest = hashlib.sha256(pathlib.Path(binary).read_bytes()).hexdigest()
    made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    reference = f"longtail@{version}"
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": reference,
                "name": "longtail",
                "version": version,
                "description": target,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
            },
        },
        "components": found,
        "dependencies": [{"ref": reference, "dependsOn": [each["bom-ref"] for each in found]}],
    }
    print(json.dumps(bill, indent=1))


main(*sys.argv[1:])
