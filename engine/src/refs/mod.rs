//! References: listing, resolving and transactions.
