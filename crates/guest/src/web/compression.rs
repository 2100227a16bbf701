//! gzip, deflate (zlib) and raw deflate, by the `flate2` crate.

use super::{undefined, with_window};
use crate::{
    engine::js::{Ctx, Object, Result, Value, function::Func},
    native::Native,
    raw,
};
use coracle_value::TypedArrayKind;
use flate2::{
    Compression,
    write::{DeflateDecoder, DeflateEncoder, GzDecoder, GzEncoder, ZlibDecoder, ZlibEncoder},
};
use std::io::{self, Write};

pub(super) fn install(object: &Object<'_>) -> Result<()> {
    object.set("newCoder", Func::from(new_coder))?;
    object.set("code", Func::from(code))
}

enum Coder {
    ToGzip(GzEncoder<Vec<u8>>),
    ToZlib(ZlibEncoder<Vec<u8>>),
    ToDeflate(DeflateEncoder<Vec<u8>>),
    FromGzip(GzDecoder<Vec<u8>>),
    FromZlib(ZlibDecoder<Vec<u8>>),
    FromDeflate(DeflateDecoder<Vec<u8>>),
}

impl Coder {
    fn new(format: &str, is_compressing: bool) -> Option<Self> {
        let level = Compression::default();
        Some(match (format, is_compressing) {
            ("gzip", true) => Self::ToGzip(GzEncoder::new(Vec::new(), level)),
            ("deflate", true) => Self::ToZlib(ZlibEncoder::new(Vec::new(), level)),
            ("deflate-raw", true) => Self::ToDeflate(DeflateEncoder::new(Vec::new(), level)),
            ("gzip", false) => Self::FromGzip(GzDecoder::new(Vec::new())),
            ("deflate", false) => Self::FromZlib(ZlibDecoder::new(Vec::new())),
            ("deflate-raw", false) => Self::FromDeflate(DeflateDecoder::new(Vec::new())),
            _ => return None,
        })
    }

    /// Takes bytes in and answers with those that are ready. An error where the bytes are not of the format, end too soon
    /// or go on beyond the end.
    fn code(&mut self, bytes: &[u8], is_last: bool) -> io::Result<Vec<u8>> {
        macro_rules! compress {
            ($coder:expr) => {{
                $coder.write_all(bytes)?;
                if is_last {
                    $coder.try_finish()?;
                }
                Ok(std::mem::take($coder.get_mut()))
            }};
        }
        macro_rules! decompress {
            ($coder:expr) => {{
                $coder.write_all(bytes)?;
                if is_last {
                    $coder.try_finish()?;
                    // What has ended takes nothing more.
                    if !matches!($coder.write(&[0]), Ok(0)) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                } else {
                    $coder.flush()?;
                }
                Ok(std::mem::take($coder.get_mut()))
            }};
        }
        match self {
            Self::ToGzip(coder) => compress!(coder),
            Self::ToZlib(coder) => compress!(coder),
            Self::ToDeflate(coder) => compress!(coder),
            Self::FromGzip(coder) => decompress!(coder),
            Self::FromZlib(coder) => decompress!(coder),
            Self::FromDeflate(coder) => decompress!(coder),
        }
    }
}

/// `host.newCoder(format, isCompressing) -> coder`, or undefined where the format is unknown.
fn new_coder<'js>(ctx: Ctx<'js>, format: Value<'js>, is_compressing: bool) -> Result<Value<'js>> {
    match Coder::new(&raw::text_lossy(&format), is_compressing) {
        Some(coder) => Native::wrap(&ctx, coder),
        None => Ok(undefined(&ctx)),
    }
}

/// `host.code(coder, buffer, offset, length, isLast) -> Uint8Array`, or undefined where the bytes are not of the format.
fn code<'js>(
    ctx: Ctx<'js>,
    coder: Value<'js>,
    buffer: Value<'js>,
    offset: usize,
    length: usize,
    is_last: bool,
) -> Result<Value<'js>> {
    let coded = Native::with(&coder, |coder: &mut Coder| {
        with_window(&buffer, offset, length, |bytes| {
            coder.code(bytes, is_last).ok()
        })
    });
    match coded.flatten() {
        Some(bytes) => raw::typed_array(&raw::array_buffer(&ctx, &bytes)?, TypedArrayKind::Uint8),
        None => Ok(undefined(&ctx)),
    }
}
