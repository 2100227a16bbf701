//! Values that refer to nothing, as expressions and back: the conversion by itself.

use crate::{
    Capability, Kind,
    error::{ConvertError, Violation},
    handle::{Ledger, Promise},
    limits::Limits,
    measure::{Measure, json_members},
    parcel::{Draft, Slot},
    read::{Context, evaluate},
    unshare::unshare,
    write::{Ids, write},
};
use coracle_value::{Bounds, Text, Value, from_json};

/// The expression of a value that refers to nothing.
///
/// # Errors
/// What the protocol has no form for, with its place, and what goes beyond the limits.
pub fn to_expression(value: &Value, limits: &Limits) -> Result<String, ConvertError> {
    let value = unshare(value.clone(), limits)?;
    Measure::of(&value).check(limits)?;
    let ids = Ids {
        export: 0,
        import: 0,
    };
    let written = write::<u8>(&value, &[], ids, limits)?;
    match written.pipes.is_empty() {
        true => Ok(written.text),
        false => Err(ConvertError::Unsupported {
            what: "a Blob without a connection",
            at: String::from("$"),
        }),
    }
}

/// The value of an expression that refers to nothing.
///
/// # Errors
/// What is no expression, or refers to something, with its place; and what goes beyond the limits.
pub fn from_expression(text: &str, limits: &Limits) -> Result<Value, Violation> {
    let Limits {
        message_bytes_max: bytes_max,
        members_max,
        ..
    } = *limits;
    let members = json_members(text);
    if members > members_max {
        return Err(Violation::MembersExceeded {
            members,
            members_max,
        });
    }
    let bounds = Bounds {
        depth_max: limits.json_depth(),
        bytes_max,
        externals: 0,
    };
    let expression = from_json(text, &bounds)?;
    let ledger = Ledger::default();
    let draft: Draft<u8> = evaluate(&expression, &mut Nothing, &ledger, limits)?;
    Ok(draft.value)
}

/// There is nothing to refer to.
struct Nothing;

impl Context<u8> for Nothing {
    type Subject = u8;

    fn step(&mut self) -> Result<(), Violation> {
        Ok(())
    }

    fn subject(&mut self, id: i64) -> Result<u8, Violation> {
        Err(Violation::ExportUnknown { id })
    }

    fn reference(&mut self, _: u8) -> Result<Slot<u8>, Violation> {
        Err(Violation::ExportUnknown { id: 0 })
    }

    fn access(
        &mut self,
        _: u8,
        _: Vec<String>,
        _: Option<Draft<u8>>,
    ) -> Result<Promise, Violation> {
        Err(Violation::ExportUnknown { id: 0 })
    }

    fn remap(
        &mut self,
        _: u8,
        _: Vec<String>,
        _: &[Value],
        _: &[Value],
    ) -> Result<Promise, Violation> {
        Err(Violation::ExportUnknown { id: 0 })
    }

    fn export(&mut self, id: i64, _: Kind) -> Result<Capability<u8>, Violation> {
        Err(Violation::ImportUnknown { id })
    }

    fn promise(&mut self, id: i64) -> Result<Promise, Violation> {
        Err(Violation::ImportUnknown { id })
    }

    fn readable(&mut self, id: i64) -> Result<Capability<u8>, Violation> {
        Err(Violation::PipeUnknown { id })
    }

    fn blob(&mut self, _: Text, _: Capability<u8>) -> Result<Promise, Violation> {
        Err(Violation::PipeUnknown { id: 0 })
    }
}
