//! What a cordon says, read wherever somebody waits for it.

use super::Shared;
use crate::{
    cordon::Cordon,
    frame::{self, Filled, Frames},
};
use std::{
    io,
    os::fd::AsFd,
    sync::{Arc, mpsc},
};

/// Frames that are taken in one go, so that one cordon does not keep the thread from others.
const FRAMES_AT_ONCE_MAX: usize = 64;

/// What a cordon says. Whoever has it calls [`Voice::hear`] when the pipe that it came with can be read. Dropping it ends the
/// cordon.
pub struct Voice {
    shared: Arc<Shared>,
    cordon: Arc<Cordon>,
    frames: Frames,
    /// Tells the cordon's keeper that nothing more is heard, and what was wrong.
    over: mpsc::Sender<io::Result<()>>,
}

/// What hearing has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// There may be more at once.
    Part,
    /// There is no more until the pipe can be read again.
    All,
    /// There will be no more, ever.
    End,
}

impl Voice {
    pub(super) fn new(
        shared: Arc<Shared>,
        cordon: Arc<Cordon>,
        over: mpsc::Sender<io::Result<()>>,
    ) -> Self {
        let frames = Frames::new(shared.set_up.frame_bytes_max);
        Self {
            shared,
            cordon,
            frames,
            over,
        }
    }

    /// Hears what has been said, and acts on it on this thread. Never waits, if the pipe does not.
    pub fn hear(&mut self, pipe: impl AsFd) -> Heard {
        self.try_hear(pipe).unwrap_or_else(|error| {
            let _ = self.over.send(Err(error));
            Heard::End
        })
    }

    /// The same.
    ///
    /// # Errors
    /// When it says what it may not, or can't be heard.
    pub(super) fn try_hear(&mut self, pipe: impl AsFd) -> io::Result<Heard> {
        let mut is_all = false;
        for _ in 0..FRAMES_AT_ONCE_MAX {
            if let Some(content) = self.frames.next()? {
                self.shared.hear(&self.cordon, frame::content(content)?)?;
                continue;
            }
            if is_all {
                return Ok(Heard::All);
            }
            match self.frames.fill(&pipe)? {
                Filled::Part => {}
                Filled::All => is_all = true,
                Filled::Nothing => return Ok(Heard::All),
                Filled::End => return Ok(Heard::End),
            }
        }
        Ok(Heard::Part)
    }
}
