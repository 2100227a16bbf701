//! One item of a value, by its path.
//!
//! Owns what a path means and what may be cut out. [`select`] finds the item's bytes and builds nothing, for those who
//! must not pay a tree for a look at a value. [`extract`] builds the tree, for what can't be cut; [`Value::find`] is
//! for those who have one.
//!
//! A path is names of properties of plain objects and indexes of elements of arrays, in decimals as JavaScript has
//! them. Of a repeated name the last one counts. It leads through objects that are marked as shared, and into nothing
//! else: not into a `Map`, a `Set` or an `Error`.

use std::borrow::Cow;

use crate::bounds::Bounds;
use crate::decode::decode;
use crate::encode::{encode, encode_part};
use crate::error::DecodeError;
use crate::read::TextBytes;
use crate::sink::{Container, Leaf, Sink};
use crate::validate::validate;
use crate::value::Value;
use crate::walk::walk;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected<'a> {
    /// An item: its bytes, which are a value by themselves. A hole is `undefined`.
    Item(Cow<'a, [u8]>),
    /// Nothing: a name of the path leads nowhere.
    Missing {
        /// Which name, counted from 0.
        index: usize,
    },
    /// Something that can't be cut out as it is: the path leads through a reference, or the item has references in it
    /// that mean shared objects outside of it or number them from further back. [`extract`] copes.
    Entangled,
}

/// A value by itself in the place of a hole, which is none.
const UNDEFINED: &[u8] = b"\xf7";

/// Finds the item that `path` leads to.
///
/// Accepts what [`validate`](crate::validate) accepts and takes its time and memory, and a little for each name.
///
/// # Errors
/// When the bytes are not a value within the bounds, wherever in them the path leads.
pub fn select<'a, S: AsRef<str>>(
    input: &'a [u8],
    path: &[S],
    bounds: &Bounds,
) -> Result<Selected<'a>, DecodeError> {
    let mut search = Search {
        path,
        at: 0,
        depth: 0,
        levels: Vec::new(),
        resolved: 0,
        marked: false,
        shared_seen: false,
        target: None,
        is_entangled: false,
    };
    walk(input, bounds, &mut search)?;
    Ok(match search.target {
        _ if search.is_entangled => Selected::Entangled,
        Some(Target { is_hole: true, .. }) => Selected::Item(Cow::Borrowed(UNDEFINED)),
        Some(target) => {
            let end = target.end.unwrap_or(input.len());
            Selected::Item(Cow::Borrowed(&input[target.start..end]))
        }
        None => Selected::Missing {
            index: search.resolved,
        },
    })
}

/// As [`select`], by decoding all of the input: follows references, and writes what it finds as a value by itself,
/// with whatever that refers to. Never [`Selected::Entangled`].
///
/// Takes memory as [`decode`](crate::decode) does, tens of times the input.
///
/// # Errors
/// As [`select`]; also when following references makes the item nested deeper than the bounds allow.
pub fn extract<S: AsRef<str>>(
    input: &[u8],
    path: &[S],
    bounds: &Bounds,
) -> Result<Selected<'static>, DecodeError> {
    let root = decode(input, bounds)?;
    let bytes = match root.find(path) {
        Err(index) => return Ok(Selected::Missing { index }),
        Ok(Value::Hole) => encode(&Value::Undefined),
        Ok(part) => encode_part(&root, part),
    };
    validate(&bytes, bounds)?;
    Ok(Selected::Item(Cow::Owned(bytes)))
}

impl Value {
    /// The member of this tree that `path` leads to, by the rules of [`select`]. References on the way are followed; the
    /// member itself may be one, or a [`Hole`](Self::Hole).
    ///
    /// # Errors
    /// Which name of the path leads nowhere, counted from 0.
    pub fn find<S: AsRef<str>>(&self, path: &[S]) -> Result<&Self, usize> {
        let mut shared = None;
        let mut found = self;
        for (index, name) in path.iter().enumerate() {
            let name = name.as_ref();
            if let Self::Reference(number) = found {
                let objects = shared.get_or_insert_with(|| self.shared_objects());
                found = objects.get(*number as usize).copied().ok_or(index)?;
            }
            let member = match found.unshared() {
                Self::Array(elements) => array_index(name).and_then(|at| elements.get(at)),
                _ => found.get(name),
            };
            found = member.ok_or(index)?;
        }
        Ok(found)
    }
}

/// The index that a name is, as JavaScript has it: `01` and `+1` are none.
fn array_index(name: &str) -> Option<usize> {
    let index: usize = name.parse().ok()?;
    (index.to_string() == name).then_some(index)
}

/// Follows a path through the walk.
struct Search<'p, S> {
    path: &'p [S],
    /// Where what comes next begins.
    at: usize,
    /// Containers that are open.
    depth: usize,
    /// The outermost of them, through which the path leads: one for each name that is being looked for.
    levels: Vec<Level>,
    /// Names, from the first one, that lead somewhere.
    resolved: usize,
    /// The next leaf or container is marked as shared.
    marked: bool,
    /// A shared object has begun.
    shared_seen: bool,
    target: Option<Target>,
    is_entangled: bool,
}

/// An open container in which a name of the path is looked for.
enum Level {
    Array {
        /// Elements before the one that is looked for; none: there is no such element, or it is past.
        before: Option<usize>,
    },
    Object {
        /// Whether the last key is the name.
        is_named: bool,
    },
}

/// The item that the whole path leads to.
struct Target {
    start: usize,
    /// None until it is complete.
    end: Option<usize>,
    /// Containers that are open around it.
    depth: usize,
    /// Shared objects have begun before it, so that those in it are not numbered from 0.
    after_shared: bool,
    is_hole: bool,
}

impl<S: AsRef<str>> Search<'_, S> {
    /// Takes note of the item that begins. Whether the path leads to it, or through it.
    fn begin(&mut self, is_hole: bool) -> bool {
        let after_shared = self.shared_seen;
        self.shared_seen |= std::mem::take(&mut self.marked);
        if !self.is_named() {
            return false;
        }
        // An earlier one of the same name counts no more, nor does what it led to.
        self.resolved = self.levels.len();
        self.is_entangled = false;
        self.target = (self.resolved == self.path.len()).then_some(Target {
            start: self.at,
            end: None,
            depth: self.depth,
            after_shared,
            is_hole,
        });
        true
    }

    /// Whether the item that begins is the root, or has the name that is looked for in the innermost level.
    fn is_named(&mut self) -> bool {
        if self.depth != self.levels.len() {
            return false;
        }
        match self.levels.last_mut() {
            None => true,
            Some(Level::Object { is_named }) => *is_named,
            Some(Level::Array { before }) => {
                let is_named = *before == Some(0);
                *before = before.and_then(|before| before.checked_sub(1));
                is_named
            }
        }
    }

    /// Whether a reference here keeps the item from being cut out.
    fn entangles(&self, is_on_path: bool) -> bool {
        match &self.target {
            Some(target) => target.end.is_none() && target.after_shared,
            None => is_on_path,
        }
    }
}

impl<'a, S: AsRef<str>> Sink<'a> for Search<'_, S> {
    fn offset(&mut self, at: usize) {
        self.at = at;
        if let Some(target) = &mut self.target
            && target.end.is_none()
            && target.depth == self.depth
        {
            target.end = Some(at);
        }
    }

    fn shared(&mut self) {
        self.marked = true;
    }

    fn leaf(&mut self, leaf: Leaf<'a>) {
        let is_on_path = self.begin(matches!(leaf, Leaf::Hole));
        if matches!(leaf, Leaf::Reference(_)) && self.entangles(is_on_path) {
            self.is_entangled = true;
        }
    }

    fn key(&mut self, key: TextBytes<'a>) {
        let level = self.levels.len();
        if self.depth == level
            && let Some(Level::Object { is_named }) = self.levels.last_mut()
        {
            *is_named = key.is(self.path[level - 1].as_ref());
        }
    }

    fn open(&mut self, container: Container, _items: Option<usize>) {
        let is_on_path = self.begin(false);
        if is_on_path && let Some(name) = self.path.get(self.levels.len()) {
            match container {
                Container::Array => self.levels.push(Level::Array {
                    before: array_index(name.as_ref()),
                }),
                Container::Object => self.levels.push(Level::Object { is_named: false }),
                _ => {}
            }
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.levels.truncate(self.depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_written_as_javascript_writes_it() {
        assert_eq!(array_index("0"), Some(0));
        assert_eq!(array_index("10"), Some(10));
        for name in ["", "01", "+1", "-1", "1.0", " 1", "18446744073709551616"] {
            assert_eq!(array_index(name), None, "{name:?}");
        }
    }
}
