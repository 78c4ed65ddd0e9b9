//! Every write that must survive a power cut.
