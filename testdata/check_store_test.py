#!/usr/bin/env python3
"""Proves that check_store.py accepts what is right and refuses everything else for the right reason."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import check_store  # noqa: E402
import forge_store  # noqa: E402
from storecheck import Refused  # noqa: E402
from storecheck.carrier import BRANCH  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "e2ee-v5")
# Reasons that only Git can give.
NEEDS_GIT = (None, "", "index-pack")


def verdict(*arguments):
    """The summary of a store, or the reason why it is refused."""
    try:
        return check_store.check(check_store.parser().parse_args(arguments)), None
    except Refused as refusal:
        return None, str(refusal)


def golden():
    """What is wrong with the verdicts on the golden store."""
    store, keys = os.path.join(GOLDEN, "dir-store"), os.path.join(GOLDEN, "dir-store-keys")
    with open(os.path.join(GOLDEN, "dir-store.expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    generations = expected["generations"]
    for key, at in (("owner", 9), ("owner", 8), ("second", 8), ("second", 7), ("second", 6), ("owner", 0)):
        head = generations[at]["manifest_id"]
        summary, reason = verdict("--clean" if at == 9 else "--no-git", "--head", head, store,
                                  os.path.join(keys, f"{key}.key.json"))
        if reason:
            yield f"golden, {key}, generation {at}: refused: {reason}"
        elif summary["refs"] != generations[at]["refs"] or summary["packs"] != generations[at]["pack_count"]:
            yield f"golden, {key}, generation {at}: {summary}"
    for at in (9, 5):
        _, reason = verdict("--no-git", "--head", generations[at]["manifest_id"], store,
                            os.path.join(keys, "second.key.json"))
        if reason != f"generation {at}: no envelope opens with this key":
            yield f"golden, second, generation {at}: {reason}"
    _, reason = verdict(store, os.path.join(GOLDEN, "carrier-keys", "owner.key.json"))
    if not reason or "belongs to a different repository" not in reason:
        yield f"golden, key of another repository: {reason}"


def carriers(folder):
    """What is wrong with the verdicts on the golden carrier and on copies that are wrong in one way each."""
    source, keys = os.path.join(GOLDEN, "carrier.git"), os.path.join(GOLDEN, "carrier-keys")
    key = os.path.join(keys, "owner.key.json")
    with open(os.path.join(GOLDEN, "carrier.expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    summary, reason = verdict("--carrier", "--clean", source, key)
    if reason:
        yield f"golden carrier: refused: {reason}"
    elif summary["refs"] != expected["refs"] or summary["generation"] != expected["generation"]:
        yield f"golden carrier: {summary}"
    for at in (8, 6):
        head = expected["generations"][at]["manifest_id"]
        summary, reason = verdict("--carrier", "--no-git", "--head", head, source, os.path.join(keys, "second.key.json"))
        if reason or summary["refs"] != expected["generations"][at]["refs"]:
            yield f"golden carrier, second, generation {at}: {reason or summary}"
    pack = expected["generations"][1]["new_packs"][0]["id"]
    part = f"e2ee/objects/{pack[:2]}/{pack}/00000000"
    head = "e2ee/HEAD"
    for name, changes, reason in (
        ("missing pack", f"D {part}", "and the next one has not"),
        ("second part", f"R {part} {part[:-1]}1", "parts are not dense"),
        ("link", f"M 120000 inline {head}\ndata 1\nx", "mode is 120000"),
        ("executable", f"M 100755 inline {head}\ndata 65\n{'0' * 64}\n", "mode is 100755"),
        ("short head", f"M 100644 inline {head}\ndata 3\nabc", "is not an id and a newline"),
        ("other content", f"M 100644 inline {part}\ndata 3\nabc", "content has another id"),
        ("empty part", f"M 100644 inline {part[:-1]}1\ndata 0\n", "3496 bytes"),
        ("foreign file", "M 100644 inline README\ndata 3\nabc", "README: unexpected name"),
        ("foreign folder", "M 100644 inline e2ee/x/y\ndata 3\nabc", "e2ee/x: unexpected name"),
        ("attributes", "M 100644 inline .gitattributes\ndata 3\nabc", "another content"),
    ):
        for who, why in (("git-remote-e2ee", reason), ("Somebody", reason or "not written as")):
            copy = os.path.join(folder, f"{name}-{who}.git")
            shutil.copytree(source, copy)
            stream = (
                f"commit {BRANCH}\ncommitter {who} <git-remote-e2ee@invalid> 1800000000 +0000\ndata 31\n"
                f"git-remote-e2ee storage update\nfrom {BRANCH}^0\n{changes}\n"
            )
            done = subprocess.run(("git", "-C", copy, "fast-import", "--quiet"), input=stream.encode(),
                                  capture_output=True)
            if done.returncode:
                yield f"{name}: {done.stderr.decode()}"
            _, seen = verdict("--carrier", "--no-git", copy, key)
            if not seen or why not in seen and "not written as" not in seen:
                yield f"carrier, {name}, {who}: expected {why!r}, got {seen!r}"
            if name == "foreign file":
                _, seen = verdict("--shared-carrier", "--no-git", copy, key)
                if seen:
                    yield f"carrier, {name}, {who}, shared: {seen}"


def forged(folder):
    """What is wrong with the verdicts on the forged stores."""
    for name, place, (_, expected, _) in forge_store.tell_all(folder, list(forge_store.STORIES)):
        options = [] if expected in NEEDS_GIT else ["--no-git"]
        store, keys = os.path.join(place, "store"), [os.path.join(place, f"{key}.key.json") for key in ("owner", "second")]
        _, reason = verdict(*options, store, keys[0])
        if (reason is None) != (expected is None) or (expected and expected not in reason):
            yield f"{name}: expected {expected!r}, got {reason!r}"
        if options:
            # What the owner is shown may not be meant for the other reader at all, but nobody may be taken in.
            _, reason = verdict(*options, store, keys[1])
            if reason is None:
                yield f"{name}: accepted as the second device"
        if name == "leftovers":
            _, reason = verdict("--clean", "--no-git", store, keys[0])
            if not reason or "unfinished writes" not in reason:
                yield f"leftovers, --clean: {reason}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        problems = list(golden()) + list(carriers(folder)) + list(forged(folder))
    print("\n".join(problems) or f"{len(forge_store.STORIES)} stories told")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
