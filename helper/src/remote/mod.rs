//! What is done with an encrypted remote: init, list, push, fetch, verify.
