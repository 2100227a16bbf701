//! Messages as they stand in a stream: a table of segments, then the segments.
//!
//! Nothing in it is believed: memory is taken as the bytes come in, not as the table announces them.

use capnp::{Error, Word, message::ReaderSegments, word};
use futures::io::{AsyncRead, AsyncReadExt};
use std::{io, ops::Range};

/// More segments than any writer makes.
const SEGMENTS_MAX: usize = 512;
const WORD_BYTES: u64 = 8;
/// How much is read at a time.
const STEP_WORDS: usize = 8 * 1024;

/// What the table says.
pub(crate) struct Head {
    /// In words, within the message.
    segments: Vec<Range<usize>>,
    words: usize,
}

impl Head {
    pub(crate) fn bytes(&self) -> u64 {
        self.words as u64 * WORD_BYTES
    }
}

/// A message's segments, one after the other.
pub(crate) struct Segments {
    segments: Vec<Range<usize>>,
    words: Vec<Word>,
}

impl ReaderSegments for Segments {
    fn get_segment(&self, id: u32) -> Option<&[u8]> {
        let range = self.segments.get(id as usize)?;
        Some(Word::words_to_bytes(&self.words[range.clone()]))
    }

    fn len(&self) -> usize {
        self.segments.len()
    }
}

/// Reads the table of the next message; `None` at the end of the stream.
pub(crate) async fn read_head<R>(reader: &mut R, bytes_max: u64) -> Result<Option<Head>, Error>
where
    R: AsyncRead + Unpin,
{
    let mut first = [0; 8];
    let read = reader.read(&mut first).await?;
    if read == 0 {
        return Ok(None);
    }
    fill(reader, &mut first[read..]).await?;
    let segment_count = number(&first, 0) as usize + 1;
    if segment_count >= SEGMENTS_MAX {
        // Most likely it is another protocol: nothing that a request could be corrected for.
        return Err(Error::disconnected(format!(
            "a message has {segment_count} segments; fewer than {SEGMENTS_MAX} may be. Does the other side speak Cap'n \
             Proto? (The admin port speaks HTTP.)"
        )));
    }
    // The sizes of the other segments, filled up to a whole word.
    let mut rest = vec![0; (segment_count - 1).next_multiple_of(2) * 4];
    fill(reader, &mut rest).await?;
    let sizes = (0..segment_count).map(|index| match index {
        0 => number(&first, 1),
        index => number(&rest, index - 1),
    });
    let (mut segments, mut words) = (Vec::with_capacity(segment_count), 0_u64);
    for size in sizes {
        let start = words;
        words += u64::from(size);
        if words * WORD_BYTES > bytes_max {
            return Err(Error::failed(format!(
                "a message is larger than {bytes_max} bytes (message_bytes_max)"
            )));
        }
        segments.push(start as usize..words as usize);
    }
    Ok(Some(Head {
        segments,
        words: words as usize,
    }))
}

/// Reads more of a message. Where it ends here, the peer is gone, and nothing was wrong with what it said.
async fn fill<R>(reader: &mut R, bytes: &mut [u8]) -> Result<(), Error>
where
    R: AsyncRead + Unpin,
{
    match reader.read_exact(bytes).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Error::disconnected(
            "the connection was closed in the middle of a message".into(),
        )),
        outcome => Ok(outcome?),
    }
}

fn number(bytes: &[u8], index: usize) -> u32 {
    let bytes = &bytes[index * 4..][..4];
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Reads the segments that a table has announced.
pub(crate) async fn read_segments<R>(reader: &mut R, head: Head) -> Result<Segments, Error>
where
    R: AsyncRead + Unpin,
{
    // Reserved is not used: what does not come in is never touched.
    let mut words = Vec::new();
    words.try_reserve_exact(head.words).map_err(|_| {
        let bytes = head.bytes();
        Error::overloaded(format!(
            "overloaded: there is no memory for a message of {bytes} bytes"
        ))
    })?;
    while words.len() < head.words {
        let start = words.len();
        words.resize(
            (start + STEP_WORDS).min(head.words),
            word(0, 0, 0, 0, 0, 0, 0, 0),
        );
        fill(reader, Word::words_to_bytes_mut(&mut words[start..])).await?;
    }
    Ok(Segments {
        segments: head.segments,
        words,
    })
}
