//! New tags of commits that are here already.

use super::{Error, FetchOptions, Fetched, Local, Remote, refnames};

/// The most bytes of new packs that are worth reading for this.
const LIMIT: u64 = 1 << 20;

impl Remote<'_> {
    /// Fetches where the store has nothing new but tags, and little of it.
    ///
    /// Git follows a new annotated tag when it learns which object the tag is about, and that stands in the tag object,
    /// in a pack that Git will not ask for while there is nothing else to fetch. `None` where all tags are here, or
    /// where a proper fetch brings them along.
    pub fn fetch_tags(&self, local: &Local<'_>, options: FetchOptions) -> Result<Option<Fetched>, Error> {
        let (view, memory) = self.look()?;
        let mut absent = view
            .refs()
            .iter()
            .filter(|(_, id)| !local.store().contains(id))
            .peekable();
        if absent.peek().is_none() || absent.any(|(name, _)| !refnames::is_tag(name)) {
            return Ok(None);
        }
        if view.format().is_some_and(|format| format != local.format()) {
            return Ok(None);
        }
        let state = memory.as_ref().and_then(|memory| memory.state());
        let imported = state.and_then(|state| state.imported_generation);
        let Some(new) = view.packs_after(imported) else {
            return Ok(None);
        };
        let mut bytes = 0u64;
        for pack in new {
            bytes = bytes.saturating_add(pack.plaintext_size);
        }
        if bytes > LIMIT {
            return Ok(None);
        }
        drop(memory); // its lock is taken anew
        self.fetch(local, options).map(Some)
    }
}
