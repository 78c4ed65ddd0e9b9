//! Any sequence of changes and pushes by any device leaves exactly the right devices able to open each generation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ingot_engine::durable;
use ingot_helper::protocol::policy::Change;
use ingot_helper::protocol::publication::{self, Publication, Writer};
use ingot_helper::protocol::refs::RefMap;
use ingot_helper::protocol::{Chain, ContentId, DeviceKey, Role, key_file};
use ingot_helper::storage::Storage as _;
use ingot_helper::storage::directory::Directory;
use ingot_testdata::checker::check_store;
use ingot_testdata::random::Numbers;
use tempfile::TempDir;

/// What the test believes of a device: its role while it is active.
type Members = BTreeMap<usize, Option<Role>>;

struct Story {
    folder: TempDir,
    numbers: Numbers,
    directory: Directory,
    keys: Vec<DeviceKey>,
    members: Members,
    head: ContentId,
    /// Each manifest, and who must be able to open it.
    generations: Vec<(ContentId, BTreeSet<usize>)>,
}

const ROLES: [Role; 3] = [Role::Read, Role::Write, Role::Admin];

impl Story {
    fn new(seed: u64) -> Story {
        let folder = TempDir::new().unwrap();
        let directory = Directory::new(&folder.path().join("store"), durable::real()).unwrap();
        directory.create().unwrap();
        let founder = DeviceKey::generate(None).unwrap();
        let genesis = publication::genesis(&founder).unwrap();
        let head = *genesis.id();
        directory.put_manifest(genesis.bytes()).unwrap();
        directory.swap_head(None, &head).unwrap();
        let mut story = Story {
            folder,
            numbers: Numbers::new(seed),
            directory,
            keys: vec![founder],
            members: [(0, Some(Role::Admin))].into(),
            head,
            generations: vec![(head, [0].into())],
        };
        story.save(0);
        story
    }

    fn key_file(&self, device: usize) -> PathBuf {
        self.folder.path().join(format!("{device}.json"))
    }

    fn save(&mut self, device: usize) {
        key_file::create(&self.key_file(device), &self.keys[device]).unwrap();
    }

    fn active(&self, least: Role) -> Vec<usize> {
        let may =
            |(device, role): (&usize, &Option<Role>)| role.filter(|role| *role >= least).map(|_| *device);
        self.members.iter().filter_map(may).collect()
    }

    fn chain(&self, reader: usize) -> Chain {
        Chain::read(|id| self.directory.manifest(id), &self.head, &self.keys[reader]).unwrap()
    }

    fn publish(&mut self, publication: &Publication) {
        self.directory.put_manifest(publication.bytes()).unwrap();
        self.directory
            .swap_head(Some(&self.head), publication.id())
            .unwrap();
        self.head = *publication.id();
        let readers = self.active(Role::Read).into_iter().collect();
        self.generations.push((self.head, readers));
    }

    /// A push by any device; who may not is refused.
    fn push(&mut self) {
        let device = self.numbers.below(self.keys.len());
        let reader = self.active(Role::Read)[0];
        let chain = self.chain(reader);
        match Writer::begin(&chain, &self.keys[device].clone()) {
            Ok(writer) => {
                assert!(self.active(Role::Write).contains(&device));
                let publication = writer.publish(&RefMap::new()).unwrap();
                self.publish(&publication);
            }
            Err(_) => assert!(!self.active(Role::Write).contains(&device)),
        }
    }

    /// Some changes at once by any device.
    fn change(&mut self) {
        let device = self.numbers.below(self.keys.len());
        let mut after = self.members.clone();
        let mut changes = Vec::new();
        let mut touched = BTreeSet::new();
        for _ in 0..=self.numbers.below(3) {
            let role = *self.numbers.pick(&ROLES);
            let known = self.numbers.below(self.keys.len());
            match self.numbers.below(3) {
                0 if self.keys.len() < 9 => {
                    let key = DeviceKey::generate(Some(*self.keys[0].root())).unwrap();
                    changes.push(Change::Add {
                        device: key.public().clone(),
                        role,
                    });
                    self.keys.push(key);
                    self.save(self.keys.len() - 1);
                    after.insert(self.keys.len() - 1, Some(role));
                }
                1 if touched.insert(known) => {
                    changes.push(Change::Revoke(*self.keys[known].id()));
                    after.insert(known, None);
                }
                _ if touched.insert(known) => {
                    changes.push(Change::Role {
                        device: *self.keys[known].id(),
                        role,
                    });
                    after.insert(known, Some(role));
                }
                _ => {}
            }
        }
        let was_active = |device: &usize| self.members.get(device).copied().flatten().is_some();
        let allowed = self.active(Role::Admin).contains(&device)
            && touched.iter().all(was_active)
            && after.values().flatten().any(|role| *role == Role::Admin);
        let chain = self.chain(self.active(Role::Read)[0]);
        match publication::transition(&chain, &self.keys[device], &changes) {
            Ok(publication) => {
                assert!(allowed, "{changes:?}");
                self.members = after;
                self.publish(&publication);
            }
            Err(error) => assert!(!allowed, "{error}: {changes:?}"),
        }
    }

    /// Each device opens each generation that it may, and no other.
    fn judge(&self, seed: u64) {
        for (number, (id, readers)) in self.generations.iter().enumerate() {
            for (device, key) in self.keys.iter().enumerate() {
                let read = Chain::read(|id| self.directory.manifest(id), id, key);
                assert_eq!(
                    read.is_ok(),
                    readers.contains(&device),
                    "seed {seed}, device {device}, generation {number}: {read:?}"
                );
            }
        }
        for device in self.active(Role::Read) {
            check_store(self.directory.path(), &self.key_file(device), &[])
                .unwrap_or_else(|reason| panic!("seed {seed}, device {device}: {reason}"));
        }
    }
}

#[test]
fn exactly_the_right_readers_open_each_generation() {
    let mut generations = 0;
    for seed in 0..6 {
        let mut story = Story::new(seed);
        for _ in 0..16 {
            if story.numbers.once_in(3) {
                story.push();
            } else {
                story.change();
            }
        }
        story.judge(seed);
        generations += story.generations.len();
    }
    assert!(generations > 25, "only {generations} generations");
}
