//! The line protocol that Git speaks to a remote helper.
