//! Reads objects from packs, loose files and alternates.
