//! A net below the binding of credentials: takes secrets out of what comes back.
//!
//! A server that is sent a secret may echo it, by mistake or because the guest asked it to. [`Redactor`] finds each
//! secret in the forms in which that usually happens (see `forms.rs`) and writes `[redacted]` in its place. It is a net
//! and no guarantee: a server that is asked to encrypt, to compress, to turn around or to send the secret in two answers
//! does so. What keeps a secret from the guest is that it goes only to servers that don't.

mod forms;

use crate::Secret;
use aho_corasick::{
    Anchored,
    automaton::{Automaton, StateID},
    nfa::contiguous::NFA,
};
use bytes::{Buf, Bytes, BytesMut};
use std::{borrow::Cow, collections::VecDeque, fmt, sync::Arc};

/// What stands in a secret's place.
const REDACTED: &[u8] = b"[redacted]";

/// The shortest secret that is looked for, in bytes. A shorter one would be found in texts that have nothing to do with
/// it; and a guest that has a server echo all short texts would see which one is taken out, and so learn it.
pub const REDACTED_BYTES_MIN: usize = 8;

/// Takes secrets out of an answer: of its headers at once, of its body as it comes.
///
/// Of a body as much is held back as the longest form has bytes, whatever it says. (To hold back only what could begin a
/// secret would tell a guest, which has a server echo its guesses, how much of a guess is right.) Time is linear in what is
/// pushed; memory is that of the secrets in all forms, and what is held back. What is taken out does not depend on the
/// chunks that a body comes in.
pub struct Redactor {
    /// None where there is nothing to look for.
    looking: Option<Looking>,
    count: u64,
}

/// There are more or longer secrets than can be looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secrets are too many or too long to be looked for")]
pub struct RedactorError;

impl Redactor {
    /// A redactor of these secrets, of those that have [`REDACTED_BYTES_MIN`] or more. Where one is needed for each of
    /// many answers, [`Redactor::another`] is cheaper.
    ///
    /// # Errors
    /// [`RedactorError`], where they need more memory than there can be.
    pub fn new(secrets: &[Secret]) -> Result<Self, RedactorError> {
        let long = secrets
            .iter()
            .map(Secret::bytes)
            .filter(|secret| secret.len() >= REDACTED_BYTES_MIN);
        let forms = forms::all(long);
        let net = match forms.is_empty() {
            true => None,
            false => Some(Arc::new(Net::new(&forms)?)),
        };
        Ok(Self::with(net))
    }

    /// A redactor of the same secrets for another answer.
    #[must_use]
    pub fn another(&self) -> Self {
        let looking = self.looking.as_ref();
        Self::with(looking.map(|looking| Arc::clone(&looking.net)))
    }

    fn with(net: Option<Arc<Net>>) -> Self {
        let looking = net.map(|net| Looking {
            body: Body::new(&net),
            net,
        });
        Self { looking, count: 0 }
    }

    /// How often something was taken out so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes secrets out of a whole text, such as a header's value.
    pub fn redact<'a>(&mut self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(Looking { net, .. }) = &self.looking else {
            return text.into();
        };
        let mut whole = Body::new(net);
        whole.read(net, text);
        if whole.hidden.is_empty() {
            return text.into();
        }
        whole.held.extend_from_slice(text);
        let (kept, count) = whole.give(whole.end);
        self.count += count;
        kept.into()
    }

    /// The same for a text. What is no UTF-8 once a secret is out of it is replaced by U+FFFD.
    pub fn redact_text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()) {
            Cow::Borrowed(_) => text.into(),
            Cow::Owned(kept) => String::from_utf8_lossy(&kept).into_owned().into(),
        }
    }

    /// Takes the next piece of a body, and gives what can be passed on, which may be nothing.
    pub fn push(&mut self, chunk: Bytes) -> Bytes {
        let Some(Looking { net, body }) = &mut self.looking else {
            return chunk;
        };
        let is_first = body.held.is_empty() && body.hidden.is_empty();
        body.read(net, &chunk);
        let there = body.held.len() + chunk.len();
        let undecided = there.min(net.longest - 1);
        let decided = body.end - undecided as u64;
        if is_first && body.hidden.is_empty() && undecided <= chunk.len() {
            // The usual case, without a copy of anything but the end.
            let decided_bytes = chunk.len() - undecided;
            body.held.extend_from_slice(&chunk[decided_bytes..]);
            body.start = decided;
            return chunk.slice(..decided_bytes);
        }
        body.held.extend_from_slice(&chunk);
        let (kept, count) = body.give(decided);
        self.count += count;
        kept.into()
    }

    /// Gives what was held back, at the body's end. Another body may be pushed then.
    pub fn finish(&mut self) -> Bytes {
        let Some(Looking { net, body }) = &mut self.looking else {
            return Bytes::new();
        };
        let mut last = std::mem::replace(body, Body::new(net));
        let (kept, count) = last.give(last.end);
        self.count += count;
        kept.into()
    }
}

struct Looking {
    net: Arc<Net>,
    body: Body,
}

/// All forms of all secrets in one automaton.
struct Net {
    automaton: NFA,
    start: StateID,
    /// Bytes of the longest form.
    longest: usize,
    /// Whether some form starts with these two bytes.
    starts: Vec<bool>,
}

impl Net {
    fn new(forms: &[Vec<u8>]) -> Result<Self, RedactorError> {
        let mut builder = NFA::builder();
        builder.prefilter(false);
        let automaton = builder.build(forms).map_err(|_| RedactorError)?;
        let start = automaton.start_state(Anchored::No);
        let start = start.map_err(|_| RedactorError)?;
        let mut starts = vec![false; 1 << 16];
        for form in forms {
            if let [first, second, ..] = form[..] {
                starts[pair(first, second)] = true;
            }
        }
        let longest = forms.iter().map(Vec::len).max().unwrap_or(1).max(1);
        Ok(Self {
            automaton,
            start,
            longest,
            starts,
        })
    }

    /// How long the longest form is that ends in a state; 0 where none does.
    fn length(&self, state: StateID) -> usize {
        if !self.automaton.is_match(state) {
            return 0;
        }
        let matches = 0..self.automaton.match_len(state);
        let lengths = matches.map(|index| {
            let form = self.automaton.match_pattern(state, index);
            self.automaton.pattern_len(form)
        });
        lengths.max().unwrap_or(0)
    }
}

fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// What was read of a body, and not yet given. Places in it are counted from its start.
struct Body {
    state: StateID,
    held: BytesMut,
    /// Where what is held starts, and ends.
    start: u64,
    end: u64,
    /// What is to be taken out of what is held, in order and apart.
    hidden: VecDeque<Hidden>,
}

struct Hidden {
    from: u64,
    to: u64,
    /// Whether there is something in its place already.
    is_marked: bool,
}

impl Body {
    fn new(net: &Net) -> Self {
        Self {
            state: net.start,
            held: BytesMut::new(),
            start: 0,
            end: 0,
            hidden: VecDeque::new(),
        }
    }

    /// Finds what is to be taken out, up to the end of this piece. The caller adds it to what is held.
    fn read(&mut self, net: &Net, piece: &[u8]) {
        for (index, byte) in piece.iter().enumerate() {
            // Most of most texts: asking the automaton takes three times as long.
            if self.state == net.start
                && let Some(next) = piece.get(index + 1)
                && !net.starts[pair(*byte, *next)]
            {
                self.end += 1;
                continue;
            }
            self.state = net.automaton.next_state(Anchored::No, self.state, *byte);
            self.end += 1;
            if net.automaton.is_special(self.state) {
                let length = net.length(self.state) as u64;
                if length > 0 {
                    self.hide(self.end - length);
                }
            }
        }
    }

    /// Hides all from there to the end, as one with what it overlaps.
    fn hide(&mut self, from: u64) {
        let mut hidden = Hidden {
            from,
            to: self.end,
            is_marked: false,
        };
        while let Some(last) = self.hidden.pop_back_if(|last| last.to > hidden.from) {
            hidden.from = hidden.from.min(last.from);
            hidden.is_marked |= last.is_marked;
        }
        self.hidden.push_back(hidden);
    }

    /// Gives what is held up to there without what is hidden, and how much was taken out. Nothing that is found later may
    /// start before.
    fn give(&mut self, upto: u64) -> (Vec<u8>, u64) {
        let (mut kept, mut count) = (Vec::new(), 0);
        while let Some(first) = self.hidden.front_mut()
            && first.from < upto
        {
            let (from, to) = (first.from.max(self.start), first.to);
            if !std::mem::replace(&mut first.is_marked, true) {
                kept.extend_from_slice(&self.held[..(from - self.start) as usize]);
                kept.extend_from_slice(REDACTED);
                count += 1;
            }
            self.skip(to.min(upto));
            if to > upto {
                return (kept, count);
            }
            self.hidden.pop_front();
        }
        kept.extend_from_slice(&self.held[..(upto - self.start) as usize]);
        self.skip(upto);
        (kept, count)
    }

    fn skip(&mut self, to: u64) {
        self.held.advance((to - self.start) as usize);
        self.start = to;
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut redactor = formatter.debug_struct("Redactor");
        redactor.field("count", &self.count).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
