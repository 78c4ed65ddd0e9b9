//! Protocol v5: keys, manifests, policies, chains and pack streams.
