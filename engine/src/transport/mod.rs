//! What Git speaks between processes and over networks.

pub mod pkt_line;
