//! STOPGAP, replaced by the real module.
#![allow(missing_docs)]
use crate::connectivity::{self, Connectivity, Question};
use crate::pack::index;
use crate::progress::Progress;
use crate::store::{self, Store};
use crate::walk;
use gix_hash::ObjectId;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("interrupted")]
    Interrupted,
    #[error("{id} is missing")]
    Missing {
        id: ObjectId,
        referrer: Option<ObjectId>,
    },
    #[error(transparent)]
    Index(#[from] index::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Walk(#[from] walk::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub threads: usize,
}
#[derive(Debug)]
pub struct Published {
    pub keep: Option<PathBuf>,
}
#[derive(Debug)]
pub struct Info {
    pub objects: u32,
}
#[derive(Debug)]
pub struct Import {
    objects: PathBuf,
    room: tempfile::TempDir,
    format: gix_hash::Kind,
    options: Options,
    packs: Vec<index::Indexed>,
}
impl Import {
    pub fn begin(objects: &Path, format: gix_hash::Kind, options: Options) -> Result<Import, Error> {
        std::fs::create_dir_all(objects.join("pack"))?;
        let room = tempfile::Builder::new().prefix("incoming-").tempdir_in(objects)?;
        std::fs::create_dir_all(room.path().join("pack"))?;
        std::fs::create_dir_all(room.path().join("info"))?;
        std::fs::write(
            room.path().join("info/alternates"),
            format!("{}\n", std::path::absolute(objects)?.display()),
        )?;
        Ok(Import {
            objects: objects.to_owned(),
            room,
            format,
            options,
            packs: vec![],
        })
    }
    pub fn add_pack(&mut self, source: &mut dyn Read, progress: &dyn Progress) -> Result<Info, Error> {
        let store = Store::open(&self.objects, self.format)?;
        let options = index::Options {
            threads: self.options.threads,
            existing: Some(&store),
            ..index::Options::new(self.format)
        };
        let info = index::index(source, &self.room.path().join("pack"), &options, progress)?;
        let objects = info.objects;
        self.packs.push(info);
        Ok(Info { objects })
    }
    fn store(&self) -> Result<Store, Error> {
        Ok(Store::open(self.room.path(), self.format)?)
    }
    pub fn check(
        &mut self,
        tips: &[ObjectId],
        frontier: &[ObjectId],
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let store = self.store()?;
        let q = Question {
            tips,
            frontier,
            ..Question::default()
        };
        match connectivity::check(&store, &q, progress)? {
            Connectivity::Connected { .. } => Ok(()),
            Connectivity::Missing { id, referrer } => Err(Error::Missing { id, referrer }),
        }
    }
    pub fn kind(&self, id: &ObjectId) -> Result<Option<gix_object::Kind>, Error> {
        Ok(self.store()?.header(id)?.map(|(kind, _)| kind))
    }
    pub fn publish(self, keep: bool, _progress: &dyn Progress) -> Result<Vec<Published>, Error> {
        let mut out = vec![];
        for pack in &self.packs {
            if pack.objects == 0 {
                continue;
            }
            let to = self
                .objects
                .join("pack")
                .join(pack.pack.file_name().unwrap_or_default());
            let kept = to.with_extension("keep");
            if keep {
                std::fs::write(&kept, "")?;
            }
            for end in ["pack", "rev", "idx"] {
                std::fs::rename(pack.pack.with_extension(end), to.with_extension(end))?;
            }
            out.push(Published {
                keep: keep.then_some(kept),
            });
        }
        Ok(out)
    }
}
