//! A table by numbers, of which only the used parts take memory: most of the time few of a million numbers have a value,
//! and then many in succession. Knows no route. Used by [`super::waiting`].

/// Values are kept so many at a time.
const PAGE_VALUES: usize = 128;

/// See the module.
#[derive(Debug)]
pub(super) struct Pages<Value> {
    pages: Vec<Option<Box<Page<Value>>>>,
    /// The last page that became empty: the next one need not be allocated.
    spare: Option<Box<Page<Value>>>,
}

#[derive(Debug)]
struct Page<Value> {
    values: [Option<Value>; PAGE_VALUES],
    used: usize,
}

impl<Value> Default for Pages<Value> {
    fn default() -> Self {
        Self { pages: Vec::new(), spare: None }
    }
}

impl<Value> Pages<Value> {
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<&Value> {
        let page = self.pages.get(number / PAGE_VALUES)?.as_ref()?;
        page.values.get(number % PAGE_VALUES)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Value> {
        let page = self.pages.get_mut(number / PAGE_VALUES)?.as_mut()?;
        page.values.get_mut(number % PAGE_VALUES)?.as_mut()
    }

    /// The numbers that have a value.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        let pages = self.pages.iter().zip((0_usize..).step_by(PAGE_VALUES));
        pages.filter_map(|(page, first)| Some((page.as_ref()?, first))).flat_map(|(page, first)| {
            let values = page.values.iter().zip(first..);
            values.filter_map(|(value, number)| value.as_ref().map(|_| number))
        })
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &Value> {
        self.pages.iter().flatten().flat_map(|page| page.values.iter().flatten())
    }

    pub(super) fn insert(&mut self, number: usize, value: Value) {
        let place = number / PAGE_VALUES;
        if self.pages.len() <= place {
            self.pages.resize_with(place.saturating_add(1), || None);
        }
        let Some(page) = self.pages.get_mut(place) else { return };
        let page = page.get_or_insert_with(|| self.spare.take().unwrap_or_else(Page::empty));
        let Some(known) = page.values.get_mut(number % PAGE_VALUES) else { return };
        if known.replace(value).is_none() {
            page.used = page.used.saturating_add(1);
        }
    }

    pub(super) fn remove(&mut self, number: usize) -> Option<Value> {
        let place = self.pages.get_mut(number / PAGE_VALUES)?;
        let page = place.as_mut()?;
        let value = page.values.get_mut(number % PAGE_VALUES)?.take()?;
        page.used = page.used.saturating_sub(1);
        if page.used == 0 {
            self.spare = place.take();
        }
        Some(value)
    }
}

impl<Value> Page<Value> {
    fn empty() -> Box<Self> {
        Box::new(Self { values: std::array::from_fn(|_| None), used: 0 })
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
            let number = usize::try_from(rng.next_u64() % 3_000).unwrap();
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
        assert!(pages.pages.iter().all(Option::is_none));
    }
}
