//! Values that many routes share, each once, under a number. Number 0 stands for none.
//!
//! Knows no meaning of them. [`super::Fib`] keeps routers and ways in it: a million routes have few of each.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of a value.
pub(crate) type Number = u32;

#[derive(Debug)]
struct Slot<T: ?Sized> {
    value: Arc<T>,
    /// How many places have its number.
    uses: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Interned<T: ?Sized> {
    numbers: BTreeMap<Arc<T>, Number>,
    slots: Vec<Option<Slot<T>>>,
    free: Vec<Number>,
}

impl<T: ?Sized> Default for Interned<T> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Ord + ?Sized> Interned<T> {
    /// The number of `value`, with one more use; 0 if there are too many.
    pub(crate) fn hold(&mut self, value: Arc<T>) -> Number {
        if let Some(number) = self.numbers.get(&value).copied() {
            self.hold_again(number);
            return number;
        }
        let slot = Some(Slot { value: Arc::clone(&value), uses: 1 });
        let number = match self.free.pop() {
            Some(number) => number,
            None => Number::try_from(self.slots.len().saturating_add(1)).unwrap_or(0),
        };
        let Some(place) = place(number) else { return 0 };
        match self.slots.get_mut(place) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        self.numbers.insert(value, number);
        number
    }

    /// One more use of a number.
    pub(crate) fn hold_again(&mut self, number: Number) {
        if let Some(slot) = self.slot_mut(number) {
            slot.uses = slot.uses.saturating_add(1);
        }
    }

    /// One use less; without any the value is forgotten.
    pub(crate) fn release(&mut self, number: Number) {
        let Some(slot) = self.slot_mut(number) else { return };
        slot.uses = slot.uses.saturating_sub(1);
        if slot.uses > 0 {
            return;
        }
        let gone = place(number).and_then(|it| self.slots.get_mut(it)).and_then(Option::take);
        if let Some(gone) = gone {
            self.numbers.remove(&gone.value);
            self.free.push(number);
        }
    }

    /// The value of a number.
    pub(crate) fn get(&self, number: Number) -> Option<&Arc<T>> {
        let slot = place(number).and_then(|it| self.slots.get(it))?;
        slot.as_ref().map(|it| &it.value)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Number, &Arc<T>)> {
        self.numbers.iter().map(|(value, number)| (*number, value))
    }

    fn slot_mut(&mut self, number: Number) -> Option<&mut Slot<T>> {
        place(number).and_then(|it| self.slots.get_mut(it)).and_then(Option::as_mut)
    }
}

fn place(number: Number) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_number_for_as_long_as_it_is_used() {
        let mut texts: Interned<str> = Interned::default();
        let one = texts.hold("one".into());
        assert_eq!((texts.hold("one".into()), texts.get(one).map(|it| &**it)), (one, Some("one")));
        let two = texts.hold("two".into());
        texts.release(one);
        assert!(texts.get(one).is_some());
        texts.release(one);
        assert_eq!((texts.get(one), texts.iter().count()), (None, 1));
        // The number of another value may be the same then.
        assert_eq!(texts.hold("three".into()), one);
        assert_eq!(texts.get(two).map(|it| &**it), Some("two"));
        texts.release(0);
        assert_eq!(texts.get(0), None);
    }
}
