//! What the protocol and the directory backend write together passes the independent checker, for every device that
//! can read it.

use std::io::Write as _;
use std::path::Path;

use ingot_engine::durable;
use ingot_helper::protocol::pack_stream::Sealer;
use ingot_helper::protocol::policy::Change;
use ingot_helper::protocol::publication::{self, Publication, Writer};
use ingot_helper::protocol::refs::RefMap;
use ingot_helper::protocol::{Chain, DeviceKey, Role, key_file};
use ingot_helper::storage::directory::Directory;
use ingot_helper::storage::{StagedObject, Storage};
use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

fn store(storage: &dyn Storage, before: Option<&Chain>, publication: Publication) -> Chain {
    let id = storage.put_manifest(publication.bytes()).expect("stored");
    storage
        .swap_head(before.map(|chain| chain.head().id()), &id)
        .expect("nobody else writes");
    publication.into_chain()
}

fn push(storage: &dyn Storage, chain: &Chain, device: &DeviceKey, refs: &RefMap, packs: &[Vec<u8>]) -> Chain {
    let mut writer = Writer::begin(chain, device).expect("may write");
    for pack in packs {
        let staged: Box<dyn StagedObject> = storage.stage_object().expect("staged");
        let mut sealer = Sealer::new(staged, &writer.pack_key(), 2).expect("begun");
        sealer.write_all(pack).expect("written");
        let (sealed, staged) = sealer.finish().expect("sealed");
        staged.finish(&sealed.id).expect("stored");
        assert_eq!(storage.pack_size(&sealed.id).expect("there"), sealed.stored_size);
        writer.add_pack(&sealed);
    }
    store(storage, Some(chain), writer.publish(refs).expect("complete"))
}

/// A self-contained pack of what `wants` reach and `haves` do not.
fn pack(repo: &Repo, wants: &[&str], haves: &[&str]) -> Vec<u8> {
    let revisions = wants
        .iter()
        .map(|id| format!("{id}\n"))
        .chain(haves.iter().map(|id| format!("^{id}\n")));
    let revisions: String = revisions.collect();
    git::with_input(
        repo.path(),
        &["pack-objects", "--stdout", "--revs", "-q"],
        revisions.as_bytes(),
    )
}

fn key(folder: &Path, name: &str, root: Option<&DeviceKey>) -> DeviceKey {
    let key = DeviceKey::generate(root.map(|owner| *owner.root())).expect("random bytes");
    key_file::create(&folder.join(name), &key).expect("written");
    key
}

#[test]
fn the_independent_checker_accepts_what_is_written() {
    for format in Format::BOTH {
        let temp = tempfile::tempdir().expect("temporary folder");
        let storage = Directory::new(&temp.path().join("store"), durable::real()).expect("a path");
        let judge = |key: &str, generation: u64| {
            let summary = check_store(storage.path(), &temp.path().join(key), &["--clean"])
                .unwrap_or_else(|reason| panic!("generation {generation} as {key}: {reason}"));
            assert!(
                summary.contains(&format!("\"generation\": {generation},")),
                "{summary}"
            );
            assert!(
                summary.contains(&format!("\"object_format\": \"{}\"", format.name())),
                "{summary}"
            );
        };
        let repo = Repo::scripted("history", format);
        let first = repo.git(&["rev-parse", "HEAD"]);
        repo.write(
            "noise",
            (0..3_u32 << 19)
                .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
                .collect::<Vec<_>>(),
        );
        let second = repo.commit("more than one segment");

        let owner = key(temp.path(), "owner", None);
        storage.create().expect("a place");
        let mut chain = store(&storage, None, publication::genesis(&owner).expect("founded"));
        let mut refs = RefMap::from([("refs/heads/main".to_owned(), first.clone())]);
        chain = push(&storage, &chain, &owner, &refs, &[pack(&repo, &[&first], &[])]);
        judge("owner", 1);

        // Five readers need eight envelopes.
        let members: Vec<_> = ["b", "c", "d", "e"]
            .map(|name| key(temp.path(), name, Some(&owner)))
            .into();
        let add = |(member, role): (&DeviceKey, Role)| Change::Add {
            device: member.public().clone(),
            role,
        };
        let roles = [Role::Write, Role::Read, Role::Admin, Role::Write];
        let changes: Vec<_> = members.iter().zip(roles).map(add).collect();
        chain = store(
            &storage,
            Some(&chain),
            publication::transition(&chain, &owner, &changes).expect("added"),
        );
        refs.insert("refs/heads/main".to_owned(), second.clone());
        refs.insert("refs/tags/erste-Veröffentlichung".to_owned(), first.clone());
        let empty = pack(&repo, &[&second], &[&second]);
        chain = push(
            &storage,
            &chain,
            &members[0],
            &refs,
            &[pack(&repo, &[&second], &[&first]), empty],
        );
        for name in ["owner", "b", "c"] {
            judge(name, 3);
        }

        let revoke = [Change::Revoke(*members[0].id())];
        let publication = publication::transition(&chain, &members[2], &revoke).expect("revoked");
        chain = store(&storage, Some(&chain), publication);
        refs.remove("refs/tags/erste-Veröffentlichung");
        push(&storage, &chain, &members[3], &refs, &[]);
        judge("e", 5);
        let reason = check_store(storage.path(), &temp.path().join("b"), &[]).expect_err("revoked");
        assert!(reason.contains("no envelope opens"), "{reason}");
    }
}
