//! DataCache: a block cache in front of any object store, and rendezvous placement.
