//! Takes packs into quarantine, checks them, and publishes them at once.
