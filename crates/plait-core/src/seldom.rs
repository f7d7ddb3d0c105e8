//! A list that is nearly always empty.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// A list that takes one word and no further memory while it is empty.
#[derive(Debug)]
#[expect(clippy::box_collection, reason = "a list is three words, a pointer one")]
pub(crate) struct Seldom<T>(Option<Box<Vec<T>>>);

impl<T> Default for Seldom<T> {
    fn default() -> Seldom<T> {
        Seldom(None)
    }
}

impl<T> Deref for Seldom<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_ref().map_or(&[], |list| list)
    }
}

impl<T> DerefMut for Seldom<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_mut().map_or(&mut [], |list| list)
    }
}

impl<T> Seldom<T> {
    /// Returns true if the list has no item and no memory.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn push(&mut self, item: T) {
        self.0.get_or_insert_default().push(item);
    }

    /// Removes and returns the item at `at`; `None` beyond the end.
    pub(crate) fn remove(&mut self, at: usize) -> Option<T> {
        let list = self.0.as_mut().filter(|list| at < list.len())?;
        let item = list.remove(at);
        self.settle();
        Some(item)
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        if let Some(list) = &mut self.0 {
            list.retain(keep);
            self.settle();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// Removes and returns all items.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.0.take().map_or_else(Vec::new, |list| *list)
    }

    fn settle(&mut self) {
        self.0.take_if(|list| list.is_empty());
    }
}

impl<T> From<Vec<T>> for Seldom<T> {
    fn from(list: Vec<T>) -> Seldom<T> {
        Seldom((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl<T> Extend<T> for Seldom<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_word_that_holds_nothing_once_it_is_empty() {
        assert_eq!(size_of::<Seldom<[u64; 9]>>(), size_of::<usize>());
        let mut list = Seldom::default();
        assert!(list.is_empty() && list[..].is_empty() && list.remove(0).is_none());
        list.extend([1, 2, 3]);
        list.retain(|it| *it != 2);
        list[1] += 1;
        assert_eq!(list[..], [1, 4]);
        assert_eq!((list.remove(2), list.remove(0)), (None, Some(1)));
        assert_eq!((list.remove(0), list.0.is_none()), (Some(4), true));
        assert!(list.is_empty());
        list.push(5);
        assert_eq!(list.take(), [5]);
        assert!(list.0.is_none() && Seldom::<u8>::from(Vec::new()).0.is_none());
    }
}
