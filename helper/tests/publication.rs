//! What the protocol publishes, judged by the independent checker and read back by every device.

use std::io::{Read as _, Write as _};
use std::path::Path;

use ingot_engine::durable;
use ingot_helper::protocol::keys::DeviceKey;
use ingot_helper::protocol::pack_stream::{Opener, Sealer};
use ingot_helper::protocol::policy::{Change, Role};
use ingot_helper::protocol::publication::{self, Publication, Writer};
use ingot_helper::protocol::refs::RefMap;
use ingot_helper::protocol::{Chain, key_file};
use ingot_helper::storage::Storage as _;
use ingot_helper::storage::directory::Directory;
use ingot_testdata::checker::check_store;
use ingot_testdata::git;
use ingot_testdata::repo::{Format, Repo};

struct Store {
    directory: Directory,
    chain: Chain,
}

impl Store {
    fn publish(directory: &Directory, before: Option<&Chain>, publication: Publication) -> Chain {
        let id = directory.put_manifest(publication.bytes()).expect("stored");
        assert_eq!(&id, publication.id());
        directory
            .swap_head(before.map(|chain| chain.head().id()), &id)
            .expect("the only writer");
        publication.into_chain()
    }

    fn begin(path: &Path, founder: &DeviceKey) -> Self {
        let directory = Directory::new(path, durable::real()).expect("a path");
        directory.create().expect("a place");
        let genesis = publication::genesis(founder).expect("genesis");
        let chain = Self::publish(&directory, None, genesis);
        Self { directory, chain }
    }

    fn push(&mut self, device: &DeviceKey, refs: &RefMap, packs: &[Vec<u8>]) {
        let mut writer = Writer::begin(&self.chain, device).expect("a writer");
        for pack in packs {
            let staged = self.directory.stage_object().expect("staged");
            let mut sealer = Sealer::new(staged, &writer.pack_key(), 2).expect("header");
            sealer.write_all(pack).expect("sealed");
            let (sealed, staged) = sealer.finish().expect("sealed");
            staged.finish(&sealed.id).expect("stored");
            writer.add_pack(&sealed);
        }
        let publication = writer.publish(refs).expect("published");
        self.chain = Self::publish(&self.directory, Some(&self.chain), publication);
    }

    fn change(&mut self, administrator: &DeviceKey, changes: &[Change]) {
        let publication = publication::transition(&self.chain, administrator, changes).expect("published");
        self.chain = Self::publish(&self.directory, Some(&self.chain), publication);
    }

    fn read(&self, key: &DeviceKey) -> Chain {
        let head = self
            .directory
            .head()
            .expect("readable")
            .expect("published")
            .id()
            .expect("an id");
        Chain::read(|id| self.directory.manifest(id), &head, key).expect("readable")
    }
}

fn pack(repo: &Path, tips: &[&str], without: &[&str]) -> Vec<u8> {
    let mut revisions = tips.join("\n");
    for tip in without {
        revisions.push_str(&format!("\n^{tip}"));
    }
    revisions.push('\n');
    git::with_input(
        repo,
        &["pack-objects", "--revs", "--stdout", "--quiet"],
        revisions.as_bytes(),
    )
}

#[test]
fn stores_satisfy_the_independent_checker() {
    for format in Format::BOTH {
        let folder = tempfile::tempdir().expect("folder");
        let repo = Repo::scripted("history", format);
        let tip = git::git(repo.path(), &["rev-parse", "main"]);
        let before = git::git(repo.path(), &["rev-parse", "main~1"]);
        let key = |root| DeviceKey::generate(root).expect("random bytes");
        let founder = key(None);
        let guests: Vec<DeviceKey> = (0..5).map(|_| key(Some(*founder.root()))).collect();
        let add = |guest: &DeviceKey, role| Change::Add {
            device: guest.public().clone(),
            role,
        };
        let refs = |list: &[(&str, &str)]| -> RefMap {
            list.iter()
                .map(|(name, id)| ((*name).to_owned(), (*id).to_owned()))
                .collect()
        };

        let mut store = Store::begin(&folder.path().join("store"), &founder);
        let first = refs(&[("refs/heads/main", &before)]);
        store.push(&founder, &first, &[pack(repo.path(), &[&before], &[])]);
        store.change(
            &founder,
            &[add(&guests[0], Role::Write), add(&guests[1], Role::Read)],
        );
        let second = refs(&[
            ("refs/heads/main", &tip),
            ("refs/heads/b\u{fc}cher", &before),
            ("refs/tags/\"quoted\"", &tip),
        ]);
        let nothing = pack(repo.path(), &[], &[]);
        store.push(
            &guests[0],
            &second,
            &[pack(repo.path(), &[&tip], &[&before]), nothing],
        );
        store.change(
            &founder,
            &[
                add(&guests[2], Role::Admin),
                add(&guests[3], Role::Write),
                add(&guests[4], Role::Write),
            ],
        );
        store.change(
            &guests[2],
            &[Change::Revoke(*guests[0].id()), Change::Revoke(*guests[3].id())],
        );
        store.push(&guests[4], &refs(&[("refs/heads/main", &tip)]), &[]);

        for (number, device) in [&founder, &guests[1], &guests[2], &guests[4]]
            .into_iter()
            .enumerate()
        {
            let chain = store.read(device);
            assert_eq!(chain.refs(), store.chain.refs());
            assert_eq!(chain.pack_count(), 3);
            for pack in chain.packs() {
                let stored = store.directory.open_pack(&pack.id).expect("stored");
                let key = chain.pack_key(pack).expect("of the chain");
                let mut plaintext = Vec::new();
                Opener::new(stored, &key, pack, 2)
                    .and_then(|mut opener| opener.read_to_end(&mut plaintext))
                    .expect("opens");
                assert!(plaintext.starts_with(b"PACK"));
            }
            let key = folder.path().join(format!("{number}.key.json"));
            key_file::create(&key, device).expect("created");
            let summary = check_store(store.directory.path(), &key, &["--clean"])
                .unwrap_or_else(|error| panic!("{error}"));
            assert!(summary.contains(&tip), "{summary}");
        }
    }
}
