use super::pieces::Piece;
use std::collections::BTreeMap;
use tarn_cache::rendezvous;

/// Pieces by worker: `pieces[i]` are read by worker `i` of the snapshot.
#[derive(Debug, Clone)]
pub struct Placement {
    /// One list for each worker.
    pub pieces: Vec<Vec<Piece>>,
}

/// Gives every piece to a worker, by rendezvous hashing with a bound on how much one worker may get.
///
/// `slack` is that bound, as a multiple of the mean.
pub fn place(pieces: Vec<Piece>, nodes: &[String], slack: f64) -> Placement {
    let items: Vec<(String, u64)> = pieces
        .iter()
        .map(|piece| (piece.key.clone(), piece.bytes()))
        .collect();
    let mut placed = vec![Vec::new(); nodes.len()];
    let owners = rendezvous::assign(&items, nodes, slack);
    for (piece, owner) in pieces.into_iter().zip(owners) {
        placed[owner].push(piece);
    }
    Placement { pieces: placed }
}

/// The worker that is at home to most of the bytes, for a stage that runs in one task.
///
/// `None` without pieces or without workers.
pub fn home_of(pieces: &[Piece], nodes: &[String]) -> Option<usize> {
    let mut bytes: BTreeMap<usize, u64> = BTreeMap::new();
    for piece in pieces {
        let node = *rendezvous::rank(&piece.key, nodes).first()?;
        *bytes.entry(node).or_default() += piece.bytes().max(1);
    }
    bytes
        .into_iter()
        .max_by_key(|(node, bytes)| (*bytes, std::cmp::Reverse(*node)))
        .map(|(node, _)| node)
}
