//! Frames: a length of four bytes, little-endian, and as many bytes of CBOR.

use minicbor::{Decode, Encode};
use rustix::{buffer::spare_capacity, io::Errno};
use std::{
    io::{self, ErrorKind},
    os::fd::AsFd,
};

/// Bytes before the content.
const HEAD_BYTES: usize = 4;
/// What lies in a pipe is read together, so much at a time.
const READ_AHEAD_BYTES: usize = 64 << 10;
/// What is kept of a buffer that one long frame made large.
pub(crate) const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Writes `content` down as a frame, behind those that are in `bytes`.
///
/// # Errors
/// When it takes more bytes than a frame may have at all. `bytes` is as before.
pub(crate) fn append(content: &impl Encode<()>, bytes: &mut Vec<u8>) -> io::Result<()> {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEAD_BYTES]);
    // Writing to memory can't fail.
    let _ = minicbor::encode(content, &mut *bytes);
    let Ok(length) = u32::try_from(bytes.len() - start - HEAD_BYTES) else {
        bytes.truncate(start);
        return Err(ErrorKind::FileTooLarge.into());
    };
    bytes[start..start + HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Takes frames out of what a pipe brings. Memory is taken as bytes come, not as they are promised.
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    start: usize,
    frame_bytes_max: u64,
}

/// What reading has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Some bytes; there may be more.
    Part,
    /// All bytes that there were.
    All,
    /// None so far, where reading may not wait.
    Nothing,
    /// None, and none will come.
    End,
}

impl Frames {
    /// Of frames that have so many bytes at most.
    pub(crate) fn new(frame_bytes_max: u64) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            frame_bytes_max,
        }
    }

    /// From here on frames may have so many bytes.
    pub(crate) fn set_frame_bytes_max(&mut self, bytes_max: u64) {
        self.frame_bytes_max = bytes_max;
    }

    /// The content of the next frame that has come whole.
    ///
    /// # Errors
    /// When the frame is longer than allowed.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let bytes = &self.bytes[self.start..];
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head);
        if u64::from(length) > self.frame_bytes_max {
            let allowed = self.frame_bytes_max;
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("a frame of {length} bytes, {allowed} are allowed"),
            ));
        }
        let content = rest.get(..length as usize);
        self.start += content.map_or(0, |content| HEAD_BYTES + content.len());
        Ok(content)
    }

    /// Reads once; `pipe` says whether that waits.
    ///
    /// # Errors
    /// When reading fails, or the end comes in the middle of a frame.
    pub(crate) fn fill(&mut self, pipe: impl AsFd) -> io::Result<Filled> {
        self.bytes.drain(..self.start);
        self.start = 0;
        if self.bytes.is_empty() {
            self.bytes.shrink_to(BUFFER_KEPT_BYTES);
        }
        self.bytes.reserve(READ_AHEAD_BYTES);
        let room = self.bytes.capacity() - self.bytes.len();
        let read = loop {
            match rustix::io::read(&pipe, spare_capacity(&mut self.bytes)) {
                Ok(read) => break read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Filled::Nothing),
                Err(error) => return Err(error.into()),
            }
        };
        match read {
            0 if self.bytes.is_empty() => Ok(Filled::End),
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ if read < room => Ok(Filled::All),
            _ => Ok(Filled::Part),
        }
    }
}

/// What a frame says: exactly one item, and nothing behind it.
///
/// # Errors
/// When it says nothing that is known.
pub(crate) fn content<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> io::Result<T> {
    let broken = |reason: String| io::Error::new(ErrorKind::InvalidData, reason);
    let mut decoder = minicbor::Decoder::new(bytes);
    let content = decoder
        .decode()
        .map_err(|error| broken(error.to_string()))?;
    if decoder.position() != bytes.len() {
        return Err(broken("bytes behind the end of a frame's content".into()));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hand_over::Pipe;
    use crate::protocol::{State, Told};
    use rustix::io::ioctl_fionbio;
    use std::{fs::File, io::Write};

    fn frame(content: &impl Encode<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        append(content, &mut bytes).unwrap();
        bytes
    }

    /// What comes out of a pipe that brings these bytes, a few at a time, and then ends.
    fn read_all(bytes: &[u8], at_once: usize, bytes_max: u64) -> io::Result<Vec<Vec<u8>>> {
        let Pipe { reader, writer } = Pipe::new()?;
        let mut writer = Some(File::from(writer));
        let mut frames = Frames::new(bytes_max);
        let mut read = Vec::new();
        let mut pieces = bytes.chunks(at_once);
        loop {
            while let Some(content) = frames.next()? {
                read.push(content.to_vec());
            }
            match (pieces.next(), &mut writer) {
                (Some(piece), Some(writer)) => writer.write_all(piece)?,
                _ => writer = None,
            }
            if frames.fill(&reader)? == Filled::End {
                return Ok(read);
            }
        }
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let told = Told::Alive {
            state: State {
                queued: 3,
                memory_bytes: u64::MAX,
                ..State::default()
            },
            tenants: Vec::new(),
        };
        let mut bytes = Vec::new();
        append(&told, &mut bytes).unwrap();
        append(&told, &mut bytes).unwrap();
        for at_once in [1, 3, bytes.len()] {
            let frames = read_all(&bytes, at_once, 100).unwrap();
            assert_eq!(frames.len(), 2);
            for content in frames {
                let said: Told = super::content(&content).unwrap();
                assert_eq!(format!("{said:?}"), format!("{told:?}"));
            }
        }
    }

    #[test]
    fn a_frame_that_is_too_long_or_cut_off_is_an_error() {
        let one = frame(&7_u8);
        assert_eq!(one, [1, 0, 0, 0, 7]);
        assert!(read_all(&one, 9, 0).is_err());
        for cut in 1..one.len() {
            assert!(read_all(&one[..cut], 9, 100).is_err(), "{cut}");
        }
        // Four GiB are promised; nothing is taken for them.
        assert!(read_all(&[255; 8], 9, u64::MAX).is_err());
    }

    #[test]
    fn where_reading_may_not_wait_it_says_what_there_was() {
        let Pipe { reader, writer } = Pipe::new().unwrap();
        ioctl_fionbio(&reader, true).unwrap();
        let mut writer = File::from(writer);
        let mut frames = Frames::new(1 << 20);
        assert_eq!(frames.fill(&reader).unwrap(), Filled::Nothing);
        writer.write_all(&frame(&7_u8)).unwrap();
        assert_eq!(frames.fill(&reader).unwrap(), Filled::All);
        assert_eq!(frames.next().unwrap(), Some(&[7][..]));
        assert_eq!(frames.next().unwrap(), None);
        writer.write_all(&vec![0; 2 * READ_AHEAD_BYTES]).unwrap();
        assert_eq!(frames.fill(&reader).unwrap(), Filled::Part);
    }

    #[test]
    fn nothing_may_stand_behind_the_content() {
        assert!(content::<u8>(&[7]).is_ok_and(|number| number == 7));
        assert!(content::<u8>(&[7, 7]).is_err());
        assert!(content::<u8>(&[]).is_err());
    }
}
