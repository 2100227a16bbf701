//! Who pays for what runs for nobody: disposers of what the guest has given out, and handlers of what nobody wants any more.
//!
//! The invocation that gave something out pays for its being let go of: out of its books while it is there, and afterwards of
//! what it had left when it ended, its estate. So a worker never does more than the limits of its calls together, whatever it
//! does in a disposer, and what it does there is named, counted, and may call others as any code may.

use super::{Actor, Surroundings};
use crate::invocation::Invocation;
use std::collections::{BTreeMap, HashMap};

/// What the guest has given out and nobody has let go of, and what there is to pay for that.
#[derive(Default)]
pub(super) struct Estates {
    /// By the guest's ids: the invocation that gave it out.
    exports: BTreeMap<u64, u64>,
    by_giver: HashMap<u64, Estate>,
}

#[derive(Default)]
struct Estate {
    /// What is still to be paid for.
    claims: usize,
    /// The books of the invocation, once they are closed.
    books: Option<Box<Invocation>>,
}

impl Estates {
    /// The guest gives out an object, again perhaps.
    pub(super) fn give_out(&mut self, export: u64, giver: u64) {
        if self.exports.insert(export, giver).is_none_or(|before| {
            self.settle_claim(before);
            true
        }) {
            self.claim(giver);
        }
    }

    /// Something will have to be paid for.
    pub(super) fn claim(&mut self, giver: u64) {
        self.by_giver.entry(giver).or_default().claims += 1;
    }

    /// Nobody holds it any more; answers who gave it out.
    pub(super) fn let_go(&mut self, export: u64) -> Option<u64> {
        self.exports.remove(&export)
    }

    /// It has been paid for, or need not be.
    pub(super) fn settle_claim(&mut self, giver: u64) {
        if let Some(estate) = self.by_giver.get_mut(&giver) {
            estate.claims -= 1;
            if estate.claims == 0 {
                self.by_giver.remove(&giver);
            }
        }
    }

    /// An invocation ends: its books are kept as long as something is to be paid for.
    pub(super) fn bequeath(&mut self, giver: u64, books: Box<Invocation>) {
        if let Some(estate) = self.by_giver.get_mut(&giver) {
            estate.books = Some(books);
        }
    }

    fn take(&mut self, giver: u64) -> Option<Box<Invocation>> {
        self.by_giver.get_mut(&giver)?.books.take()
    }

    pub(super) fn len(&self) -> usize {
        self.exports.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exports.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.exports.clear();
        self.by_giver.clear();
    }
}

impl Actor {
    /// The first of them that has books; else one with an estate, of which books are opened.
    pub(super) fn payer(&mut self, givers: &[u64], around: &Surroundings<'_>) -> Option<u64> {
        let has_books = |giver: &&u64| self.invocations.contains_key(giver);
        if let Some(payer) = givers.iter().find(has_books) {
            return Some(*payer);
        }
        givers.iter().copied().find(|giver| {
            let Some(mut books) = self.estates.take(*giver) else {
                return false;
            };
            books.reopen(around.clock.monotonic());
            self.invocations.insert(*giver, books);
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_loader::Limits;
    use std::time::Duration;

    fn books(fuel_run: u64) -> Box<Invocation> {
        let mut books = Invocation::of_limits(Limits::default(), Duration::ZERO);
        books.fuel_run = fuel_run;
        Box::new(books)
    }

    /// An estate is there as long as something is to be paid for, and is spent once.
    #[test]
    fn an_estate_ends_with_its_last_claim() {
        let mut estates = Estates::default();
        estates.give_out(1, 7);
        estates.give_out(2, 7);
        estates.give_out(2, 8);
        assert_eq!((estates.len(), estates.by_giver.len()), (2, 2));
        estates.bequeath(7, books(5));
        assert_eq!(estates.let_go(1), Some(7));
        assert_eq!(estates.take(7).map(|books| books.fuel_run), Some(5));
        assert!(estates.take(7).is_none());
        estates.bequeath(7, books(4));
        estates.settle_claim(7);
        assert!(estates.take(7).is_none());
        estates.bequeath(9, books(1));
        assert!(estates.take(9).is_none() && estates.let_go(1).is_none());
        assert_eq!(estates.let_go(2), Some(8));
        estates.settle_claim(8);
        assert!(estates.is_empty() && estates.by_giver.is_empty());
    }
}
