//! Tables whose entries stand in several files.

/// Returns the number of entries of all tables.
pub(super) const fn count<T>(tables: &[&[T]]) -> usize {
    let (mut table, mut count) = (0, 0);
    while table < tables.len() {
        count += tables[table].len();
        table += 1;
    }
    count
}

/// Returns the tables as one, in their order. `blank` is any entry.
pub(super) const fn joined<T: Copy, const N: usize>(blank: T, tables: &[&[T]]) -> [T; N] {
    let mut all = [blank; N];
    let (mut table, mut next) = (0, 0);
    while table < tables.len() {
        let mut at = 0;
        while at < tables[table].len() {
            all[next] = tables[table][at];
            (at, next) = (at + 1, next + 1);
        }
        table += 1;
    }
    all
}
