"""What a manifest may hold as references."""

import re

from . import require

OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def valid_name(name):
    """Git's rules for a full reference name, within the two namespaces that the format carries."""
    if not name.startswith(("refs/heads/", "refs/tags/")) or FORBIDDEN.search(name) or name.endswith((".", "/")):
        return False
    return all(part and not part.startswith(".") and not part.endswith(".lock") for part in name.split("/"))


def check(refs, what):
    """Requires sorted, valid names without one inside another, and ids of one length."""
    names = list(refs)
    require([name.encode() for name in names] == sorted(name.encode() for name in names), f"{what}: refs unsorted")
    lengths = set()
    for name, value in refs.items():
        require(valid_name(name), f"{what}: ref name {name!r} is not valid")
        require(isinstance(value, str) and OBJECT_ID.fullmatch(value), f"{what}: ref {name} has no object id")
        require(value.strip("0"), f"{what}: ref {name} is all zeros")
        lengths.add(len(value))
        parts = name.split("/")
        for end in range(3, len(parts)):
            require("/".join(parts[:end]) not in refs, f"{what}: ref {name} lies below another ref")
    require(len(lengths) < 2, f"{what}: refs of two object formats")


def object_format(chain):
    """The object format that the refs of all generations agree on, `sha1` where there are none."""
    lengths = {len(value) for entry in chain for value in entry.body["refs"].values()}
    require(len(lengths) < 2, "refs of two object formats in one chain")
    return "sha256" if lengths == {64} else "sha1"
