//! From wants and haves to the set of objects to send.
