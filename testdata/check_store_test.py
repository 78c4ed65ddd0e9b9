#!/usr/bin/env python3
"""Proves that check_store.py accepts what is right and refuses everything else for the right reason."""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import check_store  # noqa: E402
import forge_store  # noqa: E402
from storecheck import Refused  # noqa: E402

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
        problems = list(golden()) + list(forged(folder))
    print("\n".join(problems) or f"{len(forge_store.STORIES)} stories told")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
