//! Imports that calls are of or refer to which have not left yet. The guest may let go of them meanwhile.

use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub(super) struct Kept {
    /// How many calls that are held each import is of use to.
    uses: HashMap<u64, usize>,
    /// Of these, what the guest has let go of.
    released: HashSet<u64>,
    /// What the guest has let go of and no call is held for.
    free: Vec<u64>,
}

impl Kept {
    /// A call is held that needs these.
    pub(super) fn keep(&mut self, imports: &[u64]) {
        for import in imports {
            *self.uses.entry(*import).or_default() += 1;
        }
    }

    /// A call that needed these has left, or never will.
    pub(super) fn let_go(&mut self, imports: &[u64]) {
        for import in imports {
            let Some(uses) = self.uses.get_mut(import) else {
                continue;
            };
            *uses -= 1;
            if *uses == 0 {
                self.uses.remove(import);
                if self.released.remove(import) {
                    self.free.push(*import);
                }
            }
        }
    }

    /// The guest lets go of these.
    pub(super) fn release(&mut self, imports: &[u64]) {
        for import in imports {
            if self.uses.contains_key(import) {
                self.released.insert(*import);
            } else {
                self.free.push(*import);
            }
        }
    }

    /// What can be let go of.
    pub(super) fn take_free(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    #[test]
    fn what_calls_need_is_let_go_of_when_the_last_has_left() {
        let mut kept = Kept::default();
        kept.keep(&[1, 2]);
        kept.keep(&[2]);
        kept.release(&[1, 2, 3]);
        assert_eq!(kept.take_free(), [3]);
        kept.let_go(&[1, 2]);
        assert_eq!(kept.take_free(), [1]);
        kept.let_go(&[2]);
        assert_eq!(kept.take_free(), [2]);
        kept.keep(&[4]);
        kept.let_go(&[4]);
        assert!(kept.take_free().is_empty());
    }
}
