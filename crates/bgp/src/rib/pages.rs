//! A table by numbers, of which only the used parts take memory: most of the time few of a million numbers have a value,
//! and then many in succession. Knows no route. Used by [`super::waiting`].

/// Values are kept so many at a time.
const PAGE_VALUES: usize = 128;
/// Pages are found in parts of so many: for each of two hundred peers, a word for each page of a full table would be 15 MB.
const PART_PAGES: usize = 64;
const PART_VALUES: usize = PART_PAGES * PAGE_VALUES;

/// See the module.
#[derive(Debug)]
pub(super) struct Pages<Value> {
    parts: Vec<Option<Box<Part<Value>>>>,
    /// The last page that became empty: the next one need not be allocated.
    spare: Option<Box<Page<Value>>>,
}

type Part<Value> = Row<Box<Page<Value>>, PART_PAGES>;
type Page<Value> = Row<Value, PAGE_VALUES>;

/// Some of so many items.
#[derive(Debug)]
struct Row<Item, const LENGTH: usize> {
    items: [Option<Item>; LENGTH],
    used: usize,
}

impl<Value> Default for Pages<Value> {
    fn default() -> Self {
        Self { parts: Vec::new(), spare: None }
    }
}

impl<Value> Pages<Value> {
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&Value> {
        let part = self.parts.get(number / PART_VALUES)?.as_ref()?;
        part.get(number / PAGE_VALUES)?.get(number)
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Value> {
        let part = self.parts.get_mut(number / PART_VALUES)?.as_mut()?;
        part.get_mut(number / PAGE_VALUES)?.get_mut(number)
    }

    /// The numbers that have a value.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.pages().flat_map(|(page, first)| {
            let values = page.items.iter().zip(first..);
            values.filter_map(|(value, number)| value.as_ref().map(|_| number))
        })
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &Value> {
        self.pages().flat_map(|(page, _)| page.items.iter().flatten())
    }

    /// Each page with its first number.
    fn pages(&self) -> impl Iterator<Item = (&Page<Value>, usize)> {
        let parts = self.parts.iter().zip((0_usize..).step_by(PART_VALUES));
        parts.filter_map(|(part, first)| Some((part.as_ref()?, first))).flat_map(|(part, first)| {
            let pages = part.items.iter().zip((first..).step_by(PAGE_VALUES));
            pages.filter_map(|(page, first)| Some((&**page.as_ref()?, first)))
        })
    }

    pub(super) fn insert(&mut self, number: usize, value: Value) {
        let place = number / PART_VALUES;
        if self.parts.len() <= place {
            self.parts.resize_with(place.saturating_add(1), || None);
        }
        let Some(part) = self.parts.get_mut(place) else { return };
        let part = part.get_or_insert_with(Box::default);
        if part.get(number / PAGE_VALUES).is_none() {
            part.insert(number / PAGE_VALUES, self.spare.take().unwrap_or_default());
        }
        if let Some(page) = part.get_mut(number / PAGE_VALUES) {
            page.insert(number, value);
        }
    }

    pub(super) fn remove(&mut self, number: usize) -> Option<Value> {
        let place = self.parts.get_mut(number / PART_VALUES)?;
        let part = place.as_mut()?;
        let page = part.get_mut(number / PAGE_VALUES)?;
        let value = page.remove(number)?;
        if page.used == 0 {
            self.spare = part.remove(number / PAGE_VALUES);
        }
        if part.used == 0 {
            *place = None;
        }
        Some(value)
    }
}

impl<Item, const LENGTH: usize> Default for Row<Item, LENGTH> {
    fn default() -> Self {
        Self { items: std::array::from_fn(|_| None), used: 0 }
    }
}

/// Numbers are those of all rows: the place in this one is what is left.
impl<Item, const LENGTH: usize> Row<Item, LENGTH> {
    #[inline]
    fn get(&self, number: usize) -> Option<&Item> {
        self.items.get(number % LENGTH)?.as_ref()
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut Item> {
        self.items.get_mut(number % LENGTH)?.as_mut()
    }

    fn insert(&mut self, number: usize, item: Item) {
        if let Some(place) = self.items.get_mut(number % LENGTH)
            && place.replace(item).is_none()
        {
            self.used = self.used.saturating_add(1);
        }
    }

    fn remove(&mut self, number: usize) -> Option<Item> {
        let item = self.items.get_mut(number % LENGTH)?.take()?;
        self.used = self.used.saturating_sub(1);
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use fairway_ground::Rng;

    #[test]
    fn values_are_found_by_their_numbers_and_leave_nothing_behind() {
        let mut rng = Rng::seeded(11);
        let (mut pages, mut plain) = (Pages::default(), BTreeMap::new());
        for round in 0..50_000_u32 {
            let number = usize::try_from(rng.next_u64() % 30_000).unwrap();
            match rng.next_u64() % 3 {
                0 => {
                    pages.insert(number, round);
                    plain.insert(number, round);
                }
                1 => assert_eq!(pages.remove(number), plain.remove(&number)),
                _ => assert_eq!(pages.get(number), plain.get(&number)),
            }
        }
        for number in plain.into_keys() {
            assert!(pages.get_mut(number).is_some() && pages.remove(number).is_some());
        }
        assert!(pages.parts.iter().all(Option::is_none));
    }
}
