use super::pieces::Piece;

/// Below this a cut costs more (another footer read, another seek) than it wins.
const MIN_CUT_BYTES: u64 = 1 << 20;

/// Spreads a task's pieces over `partitions` groups of nearly equal bytes, cutting what is too big for one.
///
/// The groups come out in a fixed order; a group may be empty when there is too little to read.
pub fn balance(pieces: Vec<Piece>, partitions: usize) -> Vec<Vec<Piece>> {
    let partitions = partitions.max(1);
    let total: u64 = pieces.iter().map(Piece::bytes).sum();
    let share = total.div_ceil(partitions as u64).max(MIN_CUT_BYTES);

    let mut cut: Vec<Piece> = pieces
        .into_iter()
        .flat_map(|piece| {
            let parts = piece.bytes().div_ceil(share).max(1);
            piece.cut(parts)
        })
        .collect();
    // The heaviest first, each to the group that has least: within 4/3 of the best (Graham 1969).
    cut.sort_by(|a, b| {
        (b.bytes(), &a.file.object_meta.location, a.start).cmp(&(
            a.bytes(),
            &b.file.object_meta.location,
            b.start,
        ))
    });
    let mut groups: Vec<(u64, Vec<Piece>)> = vec![(0, Vec::new()); partitions];
    for piece in cut {
        if let Some(least) = groups
            .iter_mut()
            .min_by_key(|(bytes, pieces)| (*bytes, pieces.len()))
        {
            least.0 += piece.bytes();
            least.1.push(piece);
        }
    }
    groups
        .into_iter()
        .map(|(_, mut pieces)| {
            pieces.sort_by(|a, b| {
                (&a.file.object_meta.location, a.start)
                    .cmp(&(&b.file.object_meta.location, b.start))
            });
            pieces
        })
        .collect()
}
