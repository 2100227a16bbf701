//! Frames: a length of four bytes, little-endian, and as many bytes of CBOR.

use minicbor::{Decode, Encode};
use std::io::{self, ErrorKind, Read};

/// Bytes before the content.
const HEAD_BYTES: usize = 4;

/// Writes `content` down as a frame.
///
/// # Errors
/// When it takes more bytes than a frame may have at all.
pub(crate) fn frame(content: &impl Encode<()>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEAD_BYTES];
    // Writing to memory can't fail.
    let _ = minicbor::encode(content, &mut bytes);
    let length = u32::try_from(bytes.len() - HEAD_BYTES).map_err(|_| ErrorKind::FileTooLarge)?;
    bytes[..HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Reads the next frame into `buffer`, which is kept for the next one. False at the end.
///
/// # Errors
/// When reading fails, the end comes in the middle, or the frame is longer than `bytes_max`. Memory is taken as bytes come,
/// not as they are promised.
pub(crate) fn read(
    reader: &mut impl Read,
    buffer: &mut Vec<u8>,
    bytes_max: u64,
) -> io::Result<bool> {
    let mut head = [0; HEAD_BYTES];
    let read = loop {
        match reader.read(&mut head) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    if read == 0 {
        return Ok(false);
    }
    reader.read_exact(&mut head[read..])?;
    let length = u64::from(u32::from_le_bytes(head));
    if length > bytes_max {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("a frame of {length} bytes, {bytes_max} are allowed"),
        ));
    }
    buffer.clear();
    buffer.shrink_to(BUFFER_KEPT_BYTES);
    if reader.take(length).read_to_end(buffer)? as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(true)
}

/// What is kept of a buffer that one long frame made large.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

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
    use crate::protocol::{State, Told};

    fn read_all(bytes: &[u8], bytes_max: u64) -> Vec<io::Result<Vec<u8>>> {
        let (mut reader, mut buffer) = (bytes, Vec::new());
        let mut frames = Vec::new();
        loop {
            match read(&mut reader, &mut buffer, bytes_max) {
                Ok(true) => frames.push(Ok(buffer.clone())),
                Ok(false) => return frames,
                Err(error) => {
                    frames.push(Err(error));
                    return frames;
                }
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
        let one = frame(&told).unwrap();
        let frames = read_all(&[&one[..], &one].concat(), 100);
        assert_eq!(frames.len(), 2);
        for bytes in frames {
            let said: Told = content(&bytes.unwrap()).unwrap();
            assert_eq!(format!("{said:?}"), format!("{told:?}"));
        }
    }

    #[test]
    fn a_frame_that_is_too_long_or_cut_off_is_an_error() {
        let one = frame(&7_u8).unwrap();
        assert_eq!(one, [1, 0, 0, 0, 7]);
        assert!(read_all(&one, 0)[0].is_err());
        for cut in 1..one.len() {
            assert!(read_all(&one[..cut], 100)[0].is_err(), "{cut}");
        }
        // Four GiB are promised; nothing is taken for them.
        assert!(read_all(&[255; 8], u64::MAX)[0].is_err());
    }

    #[test]
    fn nothing_may_stand_behind_the_content() {
        assert!(content::<u8>(&[7]).is_ok_and(|number| number == 7));
        assert!(content::<u8>(&[7, 7]).is_err());
        assert!(content::<u8>(&[]).is_err());
    }
}
