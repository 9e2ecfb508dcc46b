//! A first-in first-out store of small values.

use std::ops::{Index, IndexMut};

/// Values in the order in which they were put in. The storage is a power of two of places, so that an
/// index needs a mask and no comparison; it grows, and shrinks only where it is told to.
///
/// As `VecDeque`, for values that can be copied, with fewer instructions where packets pass
/// (docs/performance-log.md).
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// None, or a power of two of them. Those not in use have arbitrary values.
    places: Box<[T]>,
    /// The place of the oldest value, modulo their number.
    head: usize,
    len: usize,
}

impl<T: Copy> Ring<T> {
    /// An empty store, which has no memory.
    pub fn new() -> Self {
        Self {
            places: Box::new([]),
            head: 0,
            len: 0,
        }
    }

    /// The number of values in the ring.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place of the value at `index`; any number if there are no places.
    #[inline]
    fn place(&self, index: usize) -> usize {
        self.head.wrapping_add(index) & self.places.len().wrapping_sub(1)
    }

    /// The value at `index`, counted from 0 at the oldest.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        self.places.get(self.place(index))
    }

    /// The oldest value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The latest value.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// Puts a value behind all others, and returns it there. What is changed in it there, and not before,
    /// saves a wait: a value that was written in parts and is then moved as a whole is not moved before
    /// the writes are over.
    #[inline]
    pub fn push_back(&mut self, value: T) -> &mut T {
        if self.len >= self.places.len() {
            self.grow(value);
        }
        let place = self.place(self.len);
        self.len += 1;
        let there = &mut self.places[place];
        *there = value;
        there
    }

    /// Removes and returns the oldest value.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        self.take_front().copied()
    }

    /// Removes the oldest value, and returns it where it is, until something else is put there. What needs
    /// only a part of it, or moves it on, copies nothing else.
    #[inline]
    pub fn take_front(&mut self) -> Option<&T> {
        if self.len == 0 {
            return None;
        }
        let head = self.head & self.places.len().wrapping_sub(1);
        self.head = head + 1;
        self.len -= 1;
        self.places.get(head)
    }

    /// Removes the oldest values, so many.
    ///
    /// # Panics
    /// When there are fewer.
    #[inline]
    pub fn remove_first(&mut self, count: usize) {
        assert!(count <= self.len, "{count} of {}", self.len);
        self.head = self.place(count);
        self.len -= count;
    }

    /// Removes and returns the latest value.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        let value = *self.back()?;
        self.len -= 1;
        Some(value)
    }

    /// The values, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len).map(|index| &self.places[self.place(index)])
    }

    /// The number of values, from the oldest on, for which `is_before` is true, if they come before all
    /// others.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut from, mut to) = (0, self.len);
        while from < to {
            let middle = from.midpoint(to);
            if is_before(&self.places[self.place(middle)]) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// Puts a value before the one at `index`, or behind all others. Those behind it move.
    ///
    /// # Panics
    /// When `index` is greater than the length.
    pub fn insert(&mut self, index: usize, value: T) {
        assert!(index <= self.len, "{index} of {}", self.len);
        self.push_back(value);
        for i in (index + 1..self.len).rev() {
            self.places[self.place(i)] = self.places[self.place(i - 1)];
        }
        let place = self.place(index);
        self.places[place] = value;
    }

    /// Removes and returns the value at `index`. Those between it and the nearer end move.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        let value = *self.get(index)?;
        if index < self.len / 2 {
            for i in (0..index).rev() {
                self.places[self.place(i + 1)] = self.places[self.place(i)];
            }
            self.pop_front();
        } else {
            for i in index + 1..self.len {
                self.places[self.place(i - 1)] = self.places[self.place(i)];
            }
            self.pop_back();
        }
        Some(value)
    }

    /// The number of places.
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Halves the number of places as long as the values fit in and there are more than `least`.
    pub fn shrink_to(&mut self, least: usize) {
        let count = self.len.max(least).next_power_of_two();
        if count < self.places.len() {
            let mut places: Vec<T> = self.iter().copied().collect();
            let unused = self.places.iter().take(count - places.len()).copied();
            places.extend(unused);
            self.places = places.into_boxed_slice();
            self.head = 0;
        }
    }

    /// Doubles the number of places. New ones are filled with `value`.
    #[cold]
    fn grow(&mut self, value: T) {
        let mut places = Vec::with_capacity((2 * self.len).max(4));
        places.extend(self.iter());
        places.resize(places.capacity().next_power_of_two(), value);
        self.places = places.into_boxed_slice();
        self.head = 0;
    }
}

impl<T: Copy> Index<usize> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        assert!(index < self.len, "{index} of {}", self.len);
        &self.places[self.place(index)]
    }
}

impl<T: Copy> IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        assert!(index < self.len, "{index} of {}", self.len);
        let place = self.place(index);
        &mut self.places[place]
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Makes a place behind all others. Returns it, with an arbitrary value: for a value that is written part
    /// by part, see [`push_back`](Self::push_back).
    #[inline]
    pub fn push_place(&mut self) -> &mut T {
        if self.len >= self.places.len() {
            self.grow(T::default());
        }
        let place = self.place(self.len);
        self.len += 1;
        &mut self.places[place]
    }
}

impl<T: Copy> Default for Ring<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_does_what_a_deque_does(
            steps in proptest::collection::vec((0u8..12, any::<u16>(), 0usize..40), 0..300),
        ) {
            let mut ring = Ring::new();
            let mut model = VecDeque::new();
            for (step, value, index) in steps {
                match step {
                    0..=2 => {
                        ring.push_back(value);
                        model.push_back(value);
                    }
                    3 => prop_assert_eq!(ring.pop_front(), model.pop_front()),
                    8 => prop_assert_eq!(ring.take_front().copied(), model.pop_front()),
                    4 => prop_assert_eq!(ring.pop_back(), model.pop_back()),
                    5 => prop_assert_eq!(ring.remove(index), model.remove(index)),
                    6 => {
                        let index = index.min(model.len());
                        ring.insert(index, value);
                        model.insert(index, value);
                    }
                    7 => {
                        *ring.push_place() = value;
                        model.push_back(value);
                    }
                    10 => {
                        let count = index.min(model.len());
                        ring.remove_first(count);
                        model.drain(..count);
                    }
                    9 => {
                        ring.shrink_to(index);
                        prop_assert!(ring.capacity() <= model.len().max(index).max(1) * 2);
                        if let Some(last) = model.len().checked_sub(1) {
                            (ring[last], model[last]) = (value, value);
                        }
                    }
                    _ => prop_assert_eq!(ring.get(index), model.get(index)),
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.is_empty(), model.is_empty());
                prop_assert_eq!(ring.front(), model.front());
                prop_assert_eq!(ring.back(), model.back());
                prop_assert!(ring.iter().eq(&model));
                prop_assert!(ring.iter().rev().eq(model.iter().rev()));
            }
        }

        #[test]
        fn it_finds_where_sorted_values_reach_a_bound(
            mut values in proptest::collection::vec(0u8..50, 0..60),
            taken in 0usize..20,
            bound in 0u8..50,
        ) {
            values.sort_unstable();
            let mut ring = Ring::new();
            // The oldest values are not at the first place.
            for _ in 0..taken {
                ring.push_back(0);
                ring.pop_front();
            }
            for &value in &values {
                ring.push_back(value);
            }
            let expected = values.partition_point(|&value| value < bound);
            prop_assert_eq!(ring.partition_point(|&value| value < bound), expected);
        }
    }
}
