#!/usr/bin/env python3
"""Checks a store against every rule of the format, and prints what it holds as one JSON object.

usage: check_store.py [--head ID] [--no-git] [--clean] [--carrier | --shared-carrier] STORE KEYFILE

--head ID   reads the chain from this manifest instead of HEAD
--no-git    does not hand the packs to git
--clean     refuses what crashed or failed writes leave: staged files, manifests and packs outside the chain
--carrier   STORE is a Git repository, and the store is on its branch git-remote-e2ee; git fsck has to be content with it
--shared-carrier   the same, with commits and files of other people on the branch

Exits with 1 and one line on standard error when a rule is broken. What the product writes has to pass; the check is
stricter than a reader has to be (order of JSON fields, number of envelopes).
"""

import argparse
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from storecheck import Refused, chain, packs, refs, require, wire  # noqa: E402
from storecheck.carrier import Carrier  # noqa: E402
from storecheck.store import Store  # noqa: E402


def check(arguments):
    """The summary of a store that passes; see [`parser`] for the arguments."""
    with open(arguments.keyfile, "rb") as file:
        device = wire.read_key(file.read())
    if arguments.carrier or arguments.shared_carrier:
        store = Carrier(arguments.store, foreign=arguments.shared_carrier)
    else:
        store = Store(arguments.store)
    require(arguments.head is None or wire.hex_id(arguments.head), "--head: not an id")
    entries = chain.read(arguments.head or store.head, store.manifest, device)
    head = entries[-1]
    object_format = refs.object_format(entries)
    descriptors = [(entry, item) for entry in entries for item in entry.body["new_packs"]]
    objects, objects_in_packs = None, 0
    with tempfile.TemporaryDirectory() as folder:
        judge = None if arguments.no_git else packs.Judge(folder, object_format)
        plain = os.path.join(folder, "plain.pack")
        for entry, item in descriptors:
            what = f"{entry.what} pack {item['ordinal']}"
            with open(plain, "wb") as sink:
                packs.open_stream(store.pack(item["id"]), entry, item, sink)
            objects_in_packs += packs.check_plain(plain, what, object_format)
            if judge:
                judge.import_pack(plain, what)
        if judge:
            objects = [judge.connected(entry) for entry in entries][-1]
    unreferenced = {
        "manifests": sorted(set(store.kinds["manifests"]) - {entry.id for entry in entries}),
        "packs": sorted(set(store.kinds["objects"]) - {item["id"] for _, item in descriptors}),
    }
    if arguments.clean:
        require(not store.leftovers, f"unfinished writes: {store.leftovers}")
        for kind, names in unreferenced.items():
            require(not names, f"unreferenced {kind}: {names}")
    return {
        "repository_root": head.header["repository_root"],
        "head": head.id,
        "generation": head.generation,
        "generations": len(entries),
        "object_format": object_format,
        "refs": head.body["refs"],
        "packs": len(descriptors),
        "objects_in_packs": objects_in_packs,
        "objects": objects,
        "policy_id": head.policy.id,
        "policy_generation": head.policy.generation,
        "devices": [
            {"device_id": name, "roles": item["roles"], "revoked_at": item["revoked_at"]}
            for name, item in head.policy.devices.items()
        ],
        "leftovers": store.leftovers,
        "unreferenced": unreferenced,
    }


def parser():
    """The command line."""
    result = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--head")
    result.add_argument("--no-git", action="store_true")
    result.add_argument("--clean", action="store_true")
    result.add_argument("--carrier", action="store_true")
    result.add_argument("--shared-carrier", action="store_true")
    result.add_argument("store")
    result.add_argument("keyfile")
    return result


def main():
    try:
        print(json.dumps(check(parser().parse_args()), indent=1))
    except (Refused, OSError) as error:
        sys.exit(f"check_store: {error}")


if __name__ == "__main__":
    main()
