//! An ordered map in one array: a balanced tree (A. Andersson, "Balanced search trees made simple",
//! 1993) whose nodes are the elements of a vector. The vector has no holes. When most entries are
//! gone, its memory is freed in one piece. Many small nodes between other blocks of memory cannot
//! be freed so.

use alloc::vec::Vec;

/// No node.
const NIL: u32 = u32::MAX;
/// Capacity that a map never gives back, in entries.
pub(super) const MIN_CAPACITY: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Node<K, V> {
    key: K,
    value: V,
    /// Nodes with smaller keys, and nodes with greater ones.
    left: u32,
    right: u32,
    /// 1 for a leaf. A left child is one level below, a right child at most one.
    level: u8,
}

/// An ordered map for small keys and values. It holds less than 2^32 entries.
#[derive(Debug)]
pub(super) struct Ordered<K, V> {
    nodes: Vec<Node<K, V>>,
    root: u32,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Ordered<K, V> {
        Ordered { nodes: Vec::new(), root: NIL }
    }
}

impl<K: Copy + Ord, V: Copy> Ordered<K, V> {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns all entries, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.nodes.iter().map(|node| (node.key, &node.value))
    }

    fn place(&self, key: K) -> Option<usize> {
        let mut at = self.root;
        while let Some(node) = self.nodes.get(at as usize) {
            at = match key.cmp(&node.key) {
                core::cmp::Ordering::Less => node.left,
                core::cmp::Ordering::Greater => node.right,
                core::cmp::Ordering::Equal => return Some(at as usize),
            };
        }
        None
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        Some(&self.nodes[self.place(key)?].value)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let place = self.place(key)?;
        Some(&mut self.nodes[place].value)
    }

    /// Returns the least key that is not less than `key`.
    pub(super) fn first_from(&self, key: K) -> Option<K> {
        let (mut at, mut found) = (self.root, None);
        while let Some(node) = self.nodes.get(at as usize) {
            at = if node.key < key {
                node.right
            } else {
                found = Some(node.key);
                node.left
            };
        }
        found
    }

    /// Sets the value of `key` and returns the former value.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(key) {
            return Some(core::mem::replace(known, value));
        }
        let new = self.nodes.len() as u32;
        self.nodes.push(Node { key, value, left: NIL, right: NIL, level: 1 });
        self.root = self.insert_below(self.root, new);
        None
    }

    /// Removes `key` and returns its value.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let place = self.place(key)?;
        self.root = self.remove_below(self.root, key);
        // The last node takes the place of the removed one.
        let last = self.nodes.len() - 1;
        if place < last {
            *self.link_to(last as u32) = place as u32;
        }
        let removed = self.nodes.swap_remove(place);
        let (len, capacity) = (self.nodes.len(), self.nodes.capacity());
        if capacity > MIN_CAPACITY && capacity / 4 > len {
            self.nodes.shrink_to(2 * len);
        }
        Some(removed.value)
    }

    /// Returns the link that leads to a node.
    fn link_to(&mut self, wanted: u32) -> &mut u32 {
        let key = self.nodes[wanted as usize].key;
        let (mut at, mut parent) = (self.root, NIL);
        while at != wanted {
            parent = at;
            let node = &self.nodes[at as usize];
            at = if key < node.key { node.left } else { node.right };
        }
        match self.nodes.get_mut(parent as usize) {
            Some(parent) if key < parent.key => &mut parent.left,
            Some(parent) => &mut parent.right,
            None => &mut self.root,
        }
    }

    fn node(&mut self, at: u32) -> &mut Node<K, V> {
        &mut self.nodes[at as usize]
    }

    /// Returns the level of a node, 0 if there is none.
    fn level(&self, at: u32) -> u8 {
        self.nodes.get(at as usize).map_or(0, |node| node.level)
    }

    /// Adds the node `new` to the subtree at `top` and returns the new top.
    fn insert_below(&mut self, top: u32, new: u32) -> u32 {
        if top == NIL {
            return new;
        }
        let Node { key, left, right, .. } = *self.node(top);
        if self.node(new).key < key {
            self.node(top).left = self.insert_below(left, new);
        } else {
            self.node(top).right = self.insert_below(right, new);
        }
        let top = self.skew(top);
        self.split(top)
    }

    /// Removes the node with `key` from the subtree at `top` and returns the new top.
    fn remove_below(&mut self, top: u32, key: K) -> u32 {
        if top == NIL {
            return NIL;
        }
        let Node { key: here, left, right, level, .. } = *self.node(top);
        let mut top = top;
        if key < here {
            self.node(top).left = self.remove_below(left, key);
        } else if key > here {
            self.node(top).right = self.remove_below(right, key);
        } else if left == NIL {
            // Without a left child, the node is a leaf or has a leaf to the right.
            return right;
        } else {
            // The node before it takes its place.
            let before = self.last_below(left);
            let key = self.node(before).key;
            let left = self.remove_below(left, key);
            let node = self.node(before);
            (node.left, node.right, node.level) = (left, right, level);
            top = before;
        }
        self.rebalance(top)
    }

    fn last_below(&self, mut top: u32) -> u32 {
        loop {
            match self.nodes[top as usize].right {
                NIL => return top,
                right => top = right,
            }
        }
    }

    /// Restores the levels after a removal below `top` and returns the new top.
    fn rebalance(&mut self, top: u32) -> u32 {
        let Node { left, right, level, .. } = *self.node(top);
        let most = self.level(left).min(self.level(right)) + 1;
        if most < level {
            self.node(top).level = most;
            if most < self.level(right) {
                self.node(right).level = most;
            }
        }
        let top = self.skew(top);
        let right = self.node(top).right;
        if right != NIL {
            let right = self.skew(right);
            self.node(top).right = right;
            let next = self.node(right).right;
            if next != NIL {
                self.node(right).right = self.skew(next);
            }
        }
        let top = self.split(top);
        let right = self.node(top).right;
        if right != NIL {
            self.node(top).right = self.split(right);
        }
        top
    }

    /// Turns a left child of the same level into the parent.
    fn skew(&mut self, top: u32) -> u32 {
        let Node { left, level, .. } = *self.node(top);
        if self.level(left) != level {
            return top;
        }
        self.node(top).left = self.node(left).right;
        self.node(left).right = top;
        left
    }

    /// Raises the middle one of three nodes of the same level.
    fn split(&mut self, top: u32) -> u32 {
        let Node { right, level, .. } = *self.node(top);
        if right == NIL || self.level(self.nodes[right as usize].right) != level {
            return top;
        }
        self.node(top).right = self.node(right).left;
        let node = self.node(right);
        node.left = top;
        node.level += 1;
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use plait_base::RandomStream;

    /// Returns the height of a subtree, and checks its order and its levels.
    fn checked(map: &Ordered<u32, u64>, top: u32, keys: &mut Vec<u32>) -> usize {
        let Some(node) = map.nodes.get(top as usize) else { return 0 };
        let left = checked(map, node.left, keys);
        keys.push(node.key);
        let right = checked(map, node.right, keys);
        assert_eq!(map.level(node.left), node.level - 1);
        let below = node.level - map.level(node.right);
        assert!(below <= 1);
        if below == 0 {
            assert!(map.level(map.nodes[node.right as usize].right) < node.level);
        }
        1 + left.max(right)
    }

    fn check(map: &Ordered<u32, u64>, model: &BTreeMap<u32, u64>) {
        let mut keys = Vec::new();
        let height = checked(map, map.root, &mut keys);
        assert!(keys.iter().eq(model.keys()), "{keys:?}");
        assert!(map.iter().all(|(key, value)| model[&key] == *value));
        let most = 2 * (map.len() + 1).ilog2() as usize;
        assert!(height <= most, "{height} of {most}");
    }

    /// Compares with the map of the standard library, under random insertions and removals.
    #[test]
    fn it_is_an_ordered_map_whatever_comes_and_goes() {
        let mut stream = RandomStream::new(7, &["ordered"]);
        let mut draw = |below: u64| stream.bits() % below;
        let (mut map, mut model) = (Ordered::default(), BTreeMap::new());
        for round in 0..60_000 {
            let (key, value) = (draw(700) as u32, draw(1_000));
            // The map fills up, then empties again.
            if draw(10) < if round / 3_000 % 2 == 0 { 7 } else { 2 } {
                assert_eq!(map.insert(key, value), model.insert(key, value));
            } else {
                assert_eq!(map.remove(key), model.remove(&key));
            }
            assert_eq!((map.len(), map.get(key)), (model.len(), model.get(&key)));
            let from = draw(700) as u32;
            let first = model.range(from..).next().map(|(key, _)| *key);
            assert_eq!(map.first_from(from), first);
            if round % 50 == 0 {
                check(&map, &model);
            }
        }
    }

    /// Keys in order are the worst case of an unbalanced tree. The memory is freed afterwards.
    #[test]
    fn keys_in_order_leave_no_chain_and_no_memory() {
        let (mut map, mut model) = (Ordered::default(), BTreeMap::new());
        for key in 0..20_000 {
            map.insert(key, u64::from(key));
            model.insert(key, u64::from(key));
        }
        check(&map, &model);
        for key in 0..19_990 {
            assert_eq!(map.remove(key), Some(u64::from(key)));
            model.remove(&key);
        }
        check(&map, &model);
        assert!(map.nodes.capacity() <= MIN_CAPACITY, "{}", map.nodes.capacity());
    }
}
