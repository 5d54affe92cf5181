"""The crates of others that are linked into longtail."""

import json
import subprocess


def linked(target):
    """What `cargo metadata` knows of each, in the order of names and versions."""
    tree = ["cargo", "tree", "--locked", "--package", "longtail", "--edges", "normal,no-proc-macro"]
    lines = subprocess.check_output(
        [*tree, "--target", target, "--prefix", "none", "--format", "{p}"], text=True
    )
    wanted = {tuple(line.split()[:2]) for line in lines.splitlines()}
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    packages = json.loads(subprocess.check_output(command))["packages"]
    found = [
        package
        for package in packages
        if package["source"] is not None
        and (package["name"], f"v{package['version']}") in wanted
    ]
    return sorted(found, key=lambda package: (package["name"], package["version"]))
