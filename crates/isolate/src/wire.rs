//! How messages and events are written down where they go to another process: CBOR, in which a reader trusts nothing.
//!
//! Lists are read no further than a well-behaved isolate makes them: an entry takes fewer bytes on the way than in memory.

pub(crate) mod byte_strings {
    //! A list of byte strings.
    use super::{DecodeError, EncodeError};
    use coracle_abi::LOG_ARGUMENTS_MAX;
    use minicbor::{Decoder, Encoder, bytes::ByteVec, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        strings: &[Vec<u8>],
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.array(strings.len() as u64)?;
        for string in strings {
            encoder.bytes(string)?;
        }
        Ok(())
    }

    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        context: &mut C,
    ) -> Result<Vec<Vec<u8>>, DecodeError> {
        let strings: Vec<ByteVec> = super::list(decoder, context, LOG_ARGUMENTS_MAX)?;
        Ok(strings.into_iter().map(Into::into).collect())
    }
}

pub(crate) mod octets {
    //! Shared bytes.
    use super::{DecodeError, EncodeError};
    use minicbor::{Decoder, Encoder, encode::Write};
    use std::sync::Arc;

    pub(crate) fn encode<C, W: Write>(
        octets: &Arc<[u8]>,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.bytes(octets)?.ok()
    }

    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<Arc<[u8]>, DecodeError> {
        decoder.bytes().map(Arc::from)
    }
}

pub(crate) mod octets_or_reason {
    //! Shared bytes, or a text that says why there are none.
    use super::{DecodeError, EncodeError};
    use minicbor::{Decoder, Encoder, data::Type, encode::Write};
    use std::sync::Arc;

    pub(crate) fn encode<C, W: Write>(
        octets: &Result<Arc<[u8]>, String>,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        match octets {
            Ok(octets) => encoder.bytes(octets)?.ok(),
            Err(reason) => encoder.str(reason)?.ok(),
        }
    }

    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<Result<Arc<[u8]>, String>, DecodeError> {
        Ok(match decoder.datatype()? {
            Type::String => Err(decoder.str()?.to_owned()),
            _ => Ok(decoder.bytes()?.into()),
        })
    }
}

pub(crate) mod text {
    //! A shared text.
    use super::{DecodeError, EncodeError};
    use minicbor::{Decoder, Encoder, encode::Write};
    use std::sync::Arc;

    pub(crate) fn encode<C, W: Write>(
        text: &Arc<str>,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.str(text)?.ok()
    }

    pub(crate) fn decode<C>(decoder: &mut Decoder<'_>, _: &mut C) -> Result<Arc<str>, DecodeError> {
        decoder.str().map(Arc::from)
    }
}

pub(crate) mod optional_text {
    //! A shared text, or null.
    use super::{DecodeError, EncodeError};
    use minicbor::{Decoder, Encoder, data::Type, encode::Write};
    use std::sync::Arc;

    pub(crate) fn encode<C, W: Write>(
        text: &Option<Arc<str>>,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        match text {
            Some(text) => encoder.str(text)?.ok(),
            None => encoder.null()?.ok(),
        }
    }

    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<Option<Arc<str>>, DecodeError> {
        if decoder.datatype()? == Type::Null {
            decoder.null()?;
            return Ok(None);
        }
        decoder.str().map(|text| Some(Arc::from(text)))
    }
}

pub(crate) mod shared {
    //! What is shared in memory and whole on the way.
    use super::{DecodeError, EncodeError};
    use minicbor::{Decode, Decoder, Encode, Encoder, encode::Write};
    use std::sync::Arc;

    pub(crate) fn encode<C, W: Write, T: Encode<C>>(
        shared: &Arc<T>,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        shared.as_ref().encode(encoder, context)
    }

    pub(crate) fn decode<'b, C, T: Decode<'b, C>>(
        decoder: &mut Decoder<'b>,
        context: &mut C,
    ) -> Result<Arc<T>, DecodeError> {
        T::decode(decoder, context).map(Arc::new)
    }
}

pub(crate) mod limits {
    //! All limits, in the order of [`LimitName::ALL`].
    use super::{DecodeError, EncodeError};
    use coracle_loader::{LimitName, Limits};
    use minicbor::{Decoder, Encoder, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        limits: &Limits,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.array(LimitName::ALL.len() as u64)?;
        for name in LimitName::ALL {
            encoder.u64(limits.get(name))?;
        }
        Ok(())
    }

    pub(crate) fn decode<C>(decoder: &mut Decoder<'_>, _: &mut C) -> Result<Limits, DecodeError> {
        if decoder.array()? != Some(LimitName::ALL.len() as u64) {
            return Err(DecodeError::message("not as many limits as there are"));
        }
        let mut limits = Limits::default();
        for name in LimitName::ALL {
            limits.set(name, decoder.u64()?);
        }
        Ok(limits)
    }
}

pub(crate) mod limits_request {
    //! What is asked for of the limits; 0 for what is not.
    use super::{DecodeError, EncodeError};
    use coracle_loader::{LimitName, LimitsRequest};
    use minicbor::{Decoder, Encoder, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        asked: &LimitsRequest,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.array(LimitName::ALL.len() as u64)?;
        for name in LimitName::ALL {
            encoder.u64(asked.get(name).unwrap_or(0))?;
        }
        Ok(())
    }

    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<LimitsRequest, DecodeError> {
        if decoder.array()? != Some(LimitName::ALL.len() as u64) {
            return Err(DecodeError::message("not as many limits as there are"));
        }
        let mut asked = LimitsRequest::default();
        for name in LimitName::ALL {
            let value = decoder.u64()?;
            if value > 0 && !asked.set(name, value) {
                return Err(DecodeError::message("a limit that can't be asked for"));
            }
        }
        Ok(asked)
    }
}

pub(crate) mod limit_name {
    //! The name of what led to a verdict.
    use super::{DecodeError, EncodeError};
    use coracle_loader::LimitName;
    use minicbor::{Decoder, Encoder, encode::Write};

    /// Those besides the limits of a worker.
    const OTHERS: [&str; 4] = [
        "",
        "pool_memory_bytes_max",
        "tenant_memory_bytes_max",
        "timers_max",
    ];

    pub(crate) fn encode<C, W: Write>(
        name: &'static str,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.str(name)?.ok()
    }

    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<&'static str, DecodeError> {
        let name = decoder.str()?;
        let others = OTHERS.into_iter().find(|other| *other == name);
        others
            .or_else(|| Some(name.parse::<LimitName>().ok()?.as_str()))
            .ok_or_else(|| DecodeError::message("no limit has that name"))
    }
}

pub(crate) mod externals {
    //! A table of externals.
    use super::{DecodeError, EncodeError};
    use coracle_abi::{EXTERNALS_MAX, External};
    use minicbor::{Decoder, Encoder, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        externals: &Vec<External>,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.encode_with(externals, context)?.ok()
    }

    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        context: &mut C,
    ) -> Result<Vec<External>, DecodeError> {
        super::list(decoder, context, EXTERNALS_MAX)
    }
}

pub(crate) mod path {
    //! Property names.
    use super::{DecodeError, EncodeError};
    use coracle_abi::PATH_BYTES_MAX;
    use minicbor::{Decoder, Encoder, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        path: &Vec<String>,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.encode_with(path, context)?.ok()
    }

    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        context: &mut C,
    ) -> Result<Vec<String>, DecodeError> {
        super::list(decoder, context, PATH_BYTES_MAX)
    }
}

use minicbor::{Decode, Decoder, decode::Error as DecodeError, encode::Error as EncodeError};

fn list<'b, C, T: Decode<'b, C>>(
    decoder: &mut Decoder<'b>,
    context: &mut C,
    length_max: usize,
) -> Result<Vec<T>, DecodeError> {
    let mut list = Vec::new();
    for entry in decoder.array_iter_with::<C, T>(context)? {
        if list.len() == length_max {
            return Err(DecodeError::message("a list is too long"));
        }
        list.push(entry?);
    }
    Ok(list)
}
