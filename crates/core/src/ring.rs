//! A first-in first-out store of small values.
//!
//! Values move in and out, so that a packet which owns its datagram can wait here; places that are not in use hold
//! the bits of a former value. This takes `unsafe`, which each function accounts for by the one rule at [`Ring`].
#![allow(unsafe_code)]

use std::fmt;
use std::mem::{MaybeUninit, needs_drop};
use std::ops::{Index, IndexMut};

/// Values in the order in which they were put in. The storage is a power of two of places, so that an
/// index needs a mask and no comparison; it grows, and shrinks only where it is told to.
///
/// As `VecDeque`, with fewer instructions where packets pass (docs/performance-log.md).
///
/// The rule on which all of its `unsafe` rests: the `len` places from `head` on hold a value each, which the ring owns;
/// every other place holds the bits of a value that was here before, or is a copy of another's, and that the ring
/// does not own. So a place in use can be read, and with `T: Copy` every place.
pub struct Ring<T> {
    /// None, or a power of two of them.
    places: Box<[MaybeUninit<T>]>,
    /// The place of the oldest value, modulo their number.
    head: usize,
    len: usize,
}

impl<T> Ring<T> {
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
        let place = self.places.get(self.place(index))?;
        // SAFETY: `index` is less than `len`, so the place is in use.
        Some(unsafe { place.assume_init_ref() })
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
            return self.push_grown(value);
        }
        let place = self.place(self.len);
        self.len += 1;
        self.places[place].write(value)
    }

    /// Makes room and puts a value behind all others. The value goes into a function of its own, so that where there is
    /// room it need not be in memory before it is at its place.
    #[cold]
    fn push_grown(&mut self, value: T) -> &mut T {
        self.grow(&value);
        let place = self.place(self.len);
        self.len += 1;
        self.places[place].write(value)
    }

    /// Removes and returns the oldest value.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        self.pop_front_seen(|_| ())
    }

    /// Removes and returns the oldest value, after `see` has seen it where it is: what needs a part of it reads it
    /// there, and the value is moved as a whole.
    #[inline]
    pub fn pop_front_seen(&mut self, see: impl FnOnce(&T)) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let head = self.head & self.places.len().wrapping_sub(1);
        let place = self.places.get(head)?;
        // SAFETY: the ring is not empty, so the place at `head` is in use.
        see(unsafe { place.assume_init_ref() });
        self.head = head + 1;
        self.len -= 1;
        // SAFETY: as above. With the new `head` and `len` the place is not in use, so the value is given away once.
        Some(unsafe { place.assume_init_read() })
    }

    /// Removes and returns the latest value.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        let place = self.places.get(self.place(last))?;
        self.len = last;
        // SAFETY: it was the place of the latest value, and with the new `len` it is not in use.
        Some(unsafe { place.assume_init_read() })
    }

    /// The values, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        // SAFETY: each index is less than `len`, so its place is in use.
        (0..self.len).map(|index| unsafe { self.places[self.place(index)].assume_init_ref() })
    }

    /// The number of values, from the oldest on, for which `is_before` is true, if they come before all
    /// others.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut from, mut to) = (0, self.len);
        while from < to {
            let middle = from.midpoint(to);
            // SAFETY: `middle` is less than `to`, and so than `len`: its place is in use.
            if is_before(unsafe { self.places[self.place(middle)].assume_init_ref() }) {
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
            self.places.swap(self.place(i), self.place(i - 1));
        }
    }

    /// Removes and returns the value at `index`. Those between it and the nearer end move.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len {
            return None;
        }
        if index < self.len / 2 {
            for i in (0..index).rev() {
                self.places.swap(self.place(i + 1), self.place(i));
            }
            self.pop_front()
        } else {
            for i in index + 1..self.len {
                self.places.swap(self.place(i - 1), self.place(i));
            }
            self.pop_back()
        }
    }

    /// The number of places.
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Halves the number of places as long as the values fit in and there are more than `least`.
    pub fn shrink_to(&mut self, least: usize) {
        let count = self.len.max(least).next_power_of_two();
        if count < self.places.len() {
            self.places.rotate_left(self.head & (self.places.len() - 1));
            let mut places = std::mem::take(&mut self.places).into_vec();
            // What is cut off is not in use, as there are no more values than `count`.
            places.truncate(count);
            self.places = places.into_boxed_slice();
            self.head = 0;
        }
    }

    /// Doubles the number of places. New ones are filled with the bits of `value`.
    #[cold]
    fn grow(&mut self, value: &T) {
        let count = (2 * self.len).max(4).next_power_of_two();
        self.places.rotate_left(if self.len == 0 {
            0
        } else {
            self.head & (self.len - 1)
        });
        self.head = 0;
        let mut places = std::mem::take(&mut self.places).into_vec();
        places.reserve_exact(count - places.len());
        while places.len() < count {
            // SAFETY: it is valid to read, and a `MaybeUninit` of its bits is nobody's value.
            places.push(unsafe { std::ptr::from_ref(value).cast::<MaybeUninit<T>>().read() });
        }
        self.places = places.into_boxed_slice();
    }
}

impl<T: Copy> Ring<T> {
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
        let place = self.places.get(head)?;
        // SAFETY: with `T: Copy` every place can be read.
        Some(unsafe { place.assume_init_ref() })
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
}

impl<T> Index<usize> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        assert!(index < self.len, "{index} of {}", self.len);
        // SAFETY: the place is in use.
        unsafe { self.places[self.place(index)].assume_init_ref() }
    }
}

impl<T> IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        assert!(index < self.len, "{index} of {}", self.len);
        let place = self.place(index);
        // SAFETY: the place is in use.
        unsafe { self.places[place].assume_init_mut() }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Makes a place behind all others. Returns it, with an arbitrary value: for a value that is written part
    /// by part, see [`push_back`](Self::push_back).
    #[inline]
    pub fn push_place(&mut self) -> &mut T {
        if self.len >= self.places.len() {
            self.grow(&T::default());
        }
        let place = self.place(self.len);
        self.len += 1;
        // SAFETY: with `T: Copy` every place can be read.
        unsafe { self.places[place].assume_init_mut() }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        if needs_drop::<T>() {
            while self.pop_front().is_some() {}
        }
    }
}

impl<T: Copy> Clone for Ring<T> {
    fn clone(&self) -> Self {
        Self {
            places: self.places.clone(),
            ..*self
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::rc::Rc;

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
        fn each_value_is_dropped_once(
            steps in proptest::collection::vec((0u8..8, 0usize..40), 0..300),
        ) {
            let token = Rc::new(());
            let mut ring = Ring::new();
            let mut held = Vec::new();
            for (step, index) in steps {
                match step {
                    0..=2 => {
                        ring.push_back(Rc::clone(&token));
                    }
                    3 => held.extend(ring.pop_front()),
                    4 => held.extend(ring.pop_back()),
                    5 => held.extend(ring.remove(index)),
                    6 => ring.insert(index.min(ring.len()), Rc::clone(&token)),
                    _ => ring.shrink_to(index),
                }
                prop_assert_eq!(Rc::strong_count(&token), 1 + ring.len() + held.len());
            }
            drop(ring);
            prop_assert_eq!(Rc::strong_count(&token), 1 + held.len());
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
