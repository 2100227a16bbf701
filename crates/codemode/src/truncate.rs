//! What a model is shown of a value that is too large to be shown whole.
//!
//! The result is a value of the same shape: objects keep their keys, arrays their first items, texts their beginnings, and
//! what is left out is said in its place. It is always valid JSON and always within the bound; what fits is not touched.
//! Whoever calls keeps the whole, and says where it is to be had.

use crate::{Limits, json::path_within};
use serde_json::{Map, Value};

/// What stands where nothing else fits, and what all other marks begin with.
const MARK: &str = "…";
/// The characters of [`MARK`] as JSON: the least that anything takes.
const MARK_CHARS: usize = 3;
/// How much room each of an array's items, or of an object's members, must have before another is shown.
const ITEM_CHARS: usize = 80;
const MEMBER_CHARS: usize = 24;
/// How many places are listed at which something was left out.
const CUTS_LISTED: usize = 32;

/// A value as a model is shown it.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The value, or what is shown of it.
    pub value: Value,
    /// How many characters of JSON that is, without white space.
    pub chars: usize,
    /// How many the whole is.
    pub chars_whole: usize,
    /// What was left out, the first places of it; empty where nothing was.
    pub cuts: Vec<Cut>,
    /// Whether anything was left out.
    pub is_cut: bool,
}

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where, such as `result.items[3].body`.
    pub path: String,
    /// What of it.
    pub what: CutKind,
    /// How many of those.
    pub count: usize,
}

/// What was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// The last characters of a text.
    Characters,
    /// The last items of an array.
    Items,
    /// Members of an object.
    Members,
    /// A whole value.
    Value,
}

/// What is shown of a value within the bounds `result_chars_max` and `preview_depth_max`.
#[must_use]
pub fn preview(value: &Value, limits: &Limits) -> Preview {
    let chars_whole = chars_of(value, usize::MAX);
    let mut cutter = Cutter {
        cuts: Vec::new(),
        cut_count: 0,
    };
    let chars_max = limits.result_chars_max.max(MARK_CHARS);
    let shown = cutter.fit(value, chars_max, limits.preview_depth_max.max(1), "result");
    Preview {
        chars: chars_of(&shown, usize::MAX),
        value: shown,
        chars_whole,
        cuts: cutter.cuts,
        is_cut: cutter.cut_count > 0,
    }
}

/// The beginning and the end of a text, such as a log, with a line between them that says how much is left out.
#[must_use]
pub fn preview_text(text: &str, chars_max: usize) -> String {
    let chars = text.chars().count();
    if chars <= chars_max {
        return text.to_owned();
    }
    let mark = format!("\n{MARK} {chars} characters, not all shown {MARK}\n");
    let room = chars_max.saturating_sub(mark.chars().count());
    if room == 0 {
        return MARK.chars().take(chars_max).collect();
    }
    // The end has the error, more often than not.
    let tail = room / 2;
    let head: String = text.chars().take(room - tail).collect();
    let tail: String = text.chars().skip(chars - tail).collect();
    format!("{head}{mark}{tail}")
}

/// How many characters of JSON a value is, without white space; more than `chars_max` where it is more than that.
fn chars_of(value: &Value, chars_max: usize) -> usize {
    let mut chars = 0;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        chars += match value {
            Value::Null => 4,
            Value::Bool(bool) => 5 - usize::from(*bool),
            Value::Number(number) => number.to_string().len(),
            Value::String(text) => chars_of_text(text, chars_max),
            Value::Array(items) => {
                waiting.extend(items.iter().take(chars_max));
                1 + items.len().max(1)
            }
            Value::Object(members) => {
                let mut keys = 0;
                for (key, member) in members {
                    keys += chars_of_text(key, chars_max) + 1;
                    waiting.push(member);
                    if keys > chars_max {
                        break;
                    }
                }
                keys + 1 + members.len().max(1)
            }
        };
        if chars > chars_max {
            break;
        }
    }
    chars
}

fn chars_of_text(text: &str, chars_max: usize) -> usize {
    let mut chars = 2;
    for character in text.chars() {
        chars += chars_of_character(character);
        if chars > chars_max {
            break;
        }
    }
    chars
}

/// As the serializer escapes it.
fn chars_of_character(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => 1,
    }
}

struct Cutter {
    cuts: Vec<Cut>,
    cut_count: usize,
}

impl Cutter {
    /// A value of at most so many characters and levels. The least that can be asked for is [`MARK_CHARS`].
    fn fit(&mut self, value: &Value, chars_max: usize, depth: usize, path: &str) -> Value {
        if chars_of(value, chars_max) <= chars_max && is_shallower(value, depth) {
            return value.clone();
        }
        let fitted = match value {
            Value::String(text) => self.fit_text(text, chars_max, path),
            Value::Array(items) if depth > 0 => self.fit_array(items, chars_max, depth, path),
            Value::Object(members) if depth > 0 => self.fit_object(members, chars_max, depth, path),
            _ => None,
        };
        fitted.unwrap_or_else(|| {
            self.cut(path, CutKind::Value, 1);
            Value::String(MARK.to_owned())
        })
    }

    fn cut(&mut self, path: &str, what: CutKind, count: usize) {
        self.cut_count += 1;
        if self.cuts.len() < CUTS_LISTED {
            self.cuts.push(Cut {
                path: path.to_owned(),
                what,
                count,
            });
        }
    }

    fn fit_text(&mut self, text: &str, chars_max: usize, path: &str) -> Option<Value> {
        let count = text.chars().count();
        // The count in the mark only gets shorter from here.
        let room = chars_max.checked_sub(2 + mark(count, "characters").chars().count() + 1)?;
        let mut taken = 0;
        let mut kept = 0;
        let mut end = 0;
        for character in text.chars() {
            taken += chars_of_character(character);
            if taken > room {
                break;
            }
            kept += 1;
            end += character.len_utf8();
        }
        if kept == 0 {
            return None;
        }
        self.cut(path, CutKind::Characters, count - kept);
        let head = &text[..end];
        Some(Value::String(format!(
            "{head} {}",
            mark(count - kept, "characters")
        )))
    }

    fn fit_array(
        &mut self,
        items: &[Value],
        chars_max: usize,
        depth: usize,
        path: &str,
    ) -> Option<Value> {
        let sizes = sizes(items.iter().map(|item| (0, item)), chars_max);
        let mark_chars = mark(items.len(), "items").chars().count() + 3;
        let shares = Shares::new(&sizes, items.len(), chars_max, mark_chars, ITEM_CHARS)?;
        let mut shown: Vec<Value> = Vec::with_capacity(shares.each.len() + 1);
        for (index, (item, share)) in items.iter().zip(&shares.each).enumerate() {
            shown.push(self.fit(item, *share, depth - 1, &format!("{path}[{index}]")));
        }
        let omitted = items.len() - shown.len();
        if omitted > 0 {
            self.cut(path, CutKind::Items, omitted);
            shown.push(Value::String(mark(omitted, "items")));
        }
        Some(Value::Array(shown))
    }

    fn fit_object(
        &mut self,
        members: &Map<String, Value>,
        chars_max: usize,
        depth: usize,
        path: &str,
    ) -> Option<Value> {
        let sizes = sizes(
            members
                .iter()
                .map(|(key, member)| (chars_of_text(key, chars_max) + 1, member)),
            chars_max,
        );
        // The mark is a key with the value `…`.
        let mark_chars = mark(members.len(), "members").chars().count() + 4 + MARK_CHARS;
        let shares = Shares::new(&sizes, members.len(), chars_max, mark_chars, MEMBER_CHARS)?;
        let mut shown = Map::new();
        for ((key, member), share) in members.iter().zip(&shares.each) {
            let fitted = self.fit(member, *share, depth - 1, &path_within(path, key));
            shown.insert(key.clone(), fitted);
        }
        let omitted = members.len() - shown.len();
        if omitted > 0 {
            self.cut(path, CutKind::Members, omitted);
            shown.insert(mark(omitted, "members"), Value::String(MARK.to_owned()));
        }
        Some(Value::Object(shown))
    }
}

fn mark(count: usize, what: &str) -> String {
    format!("{MARK} {count} more {what}")
}

/// Whether a value has at most so many levels of arrays and objects.
fn is_shallower(value: &Value, depth: usize) -> bool {
    let mut waiting = vec![(value, 0)];
    while let Some((value, level)) = waiting.pop() {
        let within: Box<dyn Iterator<Item = &Value>> = match value {
            Value::Array(items) => Box::new(items.iter()),
            Value::Object(members) => Box::new(members.values()),
            _ => continue,
        };
        if level >= depth {
            return false;
        }
        waiting.extend(within.map(|value| (value, level + 1)));
    }
    true
}

/// What an item takes whatever is shown of it (a key and its colon), and what it takes whole.
struct Size {
    fixed: usize,
    whole: usize,
}

/// The sizes of as many items as could be shown at all.
fn sizes<'a>(items: impl Iterator<Item = (usize, &'a Value)>, chars_max: usize) -> Vec<Size> {
    let mut sizes = Vec::new();
    let mut least = 0;
    for (fixed, value) in items {
        // Each takes a comma and a mark at least.
        least += fixed + MARK_CHARS.min(chars_of(value, MARK_CHARS)) + 1;
        if least > chars_max {
            break;
        }
        let whole = chars_of(value, chars_max);
        sizes.push(Size { fixed, whole });
    }
    sizes
}

/// How many characters each of the first items gets, its key not counted.
struct Shares {
    each: Vec<usize>,
}

impl Shares {
    /// None where not even the mark fits.
    fn new(
        sizes: &[Size],
        count: usize,
        chars_max: usize,
        mark_chars: usize,
        item_chars: usize,
    ) -> Option<Self> {
        // Two, less the comma that the last does not have.
        let brackets = 1;
        let least = |size: &Size, chars: usize| size.fixed + size.whole.min(chars) + 1;
        let fits = |chars: usize, room: usize| {
            let mut taken = 0;
            let fitting = sizes.iter().take_while(|size| {
                taken += least(size, chars);
                taken <= room
            });
            fitting.count()
        };
        let room_for_all = chars_max.checked_sub(brackets)?;
        let shown_count = if fits(item_chars, room_for_all) == count {
            count
        } else {
            let room = room_for_all.checked_sub(mark_chars)?;
            // With little room, the first item at least, as little as there is of it.
            fits(item_chars, room).max(fits(MARK_CHARS, room).min(1))
        };
        let shown = &sizes[..shown_count];
        let mut room = room_for_all;
        if shown_count < count {
            room -= mark_chars;
        }
        for size in shown {
            room -= size.fixed + 1;
        }
        // Whoever needs less than an equal share leaves the rest to the others.
        let mut order: Vec<usize> = (0..shown_count).collect();
        order.sort_by_key(|index| shown[*index].whole);
        let mut each = vec![0; shown_count];
        for (position, index) in order.into_iter().enumerate() {
            let share = room / (shown_count - position);
            each[index] = shown[index].whole.min(share);
            room -= each[index];
        }
        Some(Self { each })
    }
}

/// What a person is told of a preview, in one line; nothing where nothing was left out.
#[must_use]
pub fn explain(preview: &Preview) -> Option<String> {
    if !preview.is_cut {
        return None;
    }
    let places: Vec<_> = preview
        .cuts
        .iter()
        .take(3)
        .map(|cut| {
            let what = match cut.what {
                CutKind::Characters => "characters",
                CutKind::Items => "items",
                CutKind::Members => "members",
                CutKind::Value => return format!("all of {}", cut.path),
            };
            format!("{} {what} of {}", cut.count, cut.path)
        })
        .collect();
    Some(format!(
        "{} of {} characters are shown; left out are {}{}",
        preview.chars,
        preview.chars_whole,
        places.join(", "),
        if preview.cuts.len() > places.len() {
            " and more"
        } else {
            ""
        }
    ))
}

#[cfg(test)]
mod tests;
