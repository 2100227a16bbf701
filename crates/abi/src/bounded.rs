//! Lists that a guest sends, read no further than they may go: an entry takes fewer bytes in a message than in memory.

use crate::{EXTERNALS_MAX, External, FLAGS_MAX, MODULES_MAX, Module, PATH_LENGTH_MAX, TAILS_MAX};
use minicbor::{Decode, Decoder, decode::Error};

fn list<'b, C, T: Decode<'b, C>>(
    decoder: &mut Decoder<'b>,
    context: &mut C,
    length_max: usize,
) -> Result<Vec<T>, Error> {
    let entries = decoder.array_iter_with::<C, T>(context)?;
    let mut list = Vec::new();
    for entry in entries {
        if list.len() == length_max {
            return Err(Error::message("a list is too long"));
        }
        list.push(entry?);
    }
    Ok(list)
}

pub(crate) fn externals<'b, C>(
    decoder: &mut Decoder<'b>,
    context: &mut C,
) -> Result<Vec<External>, Error> {
    list(decoder, context, EXTERNALS_MAX)
}

pub(crate) fn modules<'b, C>(
    decoder: &mut Decoder<'b>,
    context: &mut C,
) -> Result<Vec<Module<'b>>, Error> {
    list(decoder, context, MODULES_MAX + 1)
}

pub(crate) fn flags<'b, C>(
    decoder: &mut Decoder<'b>,
    context: &mut C,
) -> Result<Vec<&'b str>, Error> {
    list(decoder, context, FLAGS_MAX)
}

pub(crate) fn tails<'b, C>(
    decoder: &mut Decoder<'b>,
    context: &mut C,
) -> Result<Vec<External>, Error> {
    list(decoder, context, TAILS_MAX)
}

pub(crate) fn path<'b, C>(
    decoder: &mut Decoder<'b>,
    context: &mut C,
) -> Result<Vec<&'b str>, Error> {
    list(decoder, context, PATH_LENGTH_MAX)
}
