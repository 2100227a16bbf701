//! Values that the server itself looks into, such as the arguments of a call of its own objects.
//!
//! Most values are passed on as bytes. One that is decoded takes up to 160 times its bytes as a tree, so what a stranger
//! sends is counted first: bytes and texts may be as large as arguments may be, but members may not be many.

use coracle_isolate::Form;
use coracle_value::{
    Bounds, DecodeError, JsonError, Value,
    sink::{Container, Leaf, Sink},
    walk,
};

/// Members, at all depths, of a value that is looked into: ten times what a request with the most headers has.
const MEMBERS_MAX: usize = 10_000;
/// Bytes of JSON text that is looked into: JSON has no bytes, and nothing else that is large is expected.
const JSON_BYTES_MAX: usize = 64 << 10;

/// Why a value is not looked into.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum TreeError {
    #[error("{0}")]
    Unreadable(#[from] DecodeError),
    #[error("{0}")]
    JsonUnreadable(#[from] JsonError),
    #[error(
        "the value has {members} members, of which an object of the server takes at most {MEMBERS_MAX}"
    )]
    MembersTooMany { members: usize },
}

/// The value that these bytes are; entries of its table are `externals`.
///
/// # Errors
/// When they are none, or one with too much in it.
pub(crate) fn read(form: Form, bytes: &[u8], externals: usize) -> Result<Value, TreeError> {
    match form {
        Form::Undefined => Ok(Value::Undefined),
        Form::Cbor => {
            let bounds = Bounds {
                externals: u32::try_from(externals).unwrap_or(u32::MAX),
                ..Bounds::default()
            };
            let mut counted = Members(0);
            walk(bytes, &bounds, &mut counted)?;
            if counted.0 > MEMBERS_MAX {
                return Err(TreeError::MembersTooMany { members: counted.0 });
            }
            Ok(coracle_value::decode(bytes, &bounds)?)
        }
        Form::Json => {
            let bounds = Bounds {
                bytes_max: JSON_BYTES_MAX,
                ..Bounds::default()
            };
            let text = String::from_utf8_lossy(bytes);
            Ok(coracle_value::from_json(&text, &bounds)?)
        }
    }
}

/// The value that these bytes are, if nothing is in it: bytes, a text, a number.
///
/// # Errors
/// When they are none, or one with members.
pub(crate) fn read_leaf(bytes: &[u8]) -> Result<Value, DecodeError> {
    let bounds = Bounds {
        depth_max: 0,
        ..Bounds::default()
    };
    coracle_value::decode(bytes, &bounds)
}

struct Members(usize);

impl<'a> Sink<'a> for Members {
    fn leaf(&mut self, _leaf: Leaf<'a>) {
        self.0 += 1;
    }

    fn open(&mut self, _container: Container, _items: Option<usize>) {
        self.0 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an object of the server's is called with makes no tree that is much larger than a request.
    #[test]
    fn members_are_counted_before_a_tree_is_made() {
        let many = |count: usize| coracle_value::encode(&Value::array(vec![Value::Null; count]));
        let fits = read(Form::Cbor, &many(MEMBERS_MAX - 1), 0);
        assert!(fits.is_ok_and(|value| value.index(MEMBERS_MAX - 2) == Some(&Value::Null)));
        let refused = read(Form::Cbor, &many(MEMBERS_MAX), 0);
        let members = MEMBERS_MAX + 1;
        assert_eq!(refused, Err(TreeError::MembersTooMany { members }));
        let nested = [&[0x9f][..], &b"\x9f\0\xff".repeat(1 << 20), &[0xff]].concat();
        let refused = read(Form::Cbor, &nested, 0);
        let members = 1 + (2 << 20);
        assert_eq!(refused, Err(TreeError::MembersTooMany { members }));
    }

    /// Bytes are no members: a body of any size that arguments may have is read.
    #[test]
    fn bytes_are_not_counted() {
        let body = coracle_value::encode(&Value::array([Value::ArrayBuffer(vec![0; 1 << 20])]));
        assert!(read(Form::Cbor, &body, 0).is_ok());
    }

    #[test]
    fn long_json_is_refused() {
        let text = format!("[{}0]", "0,".repeat(JSON_BYTES_MAX));
        let refused = read(Form::Json, text.as_bytes(), 0);
        let bytes_max = JSON_BYTES_MAX;
        assert_eq!(refused, Err(JsonError::SizeExceeded { bytes_max }.into()));
    }

    #[test]
    fn a_leaf_has_nothing_in_it() {
        let bytes = Value::uint8_array(vec![7; 3]);
        assert_eq!(read_leaf(&coracle_value::encode(&bytes)), Ok(bytes));
        let refused = read_leaf(&coracle_value::encode(&Value::array([true])));
        assert_eq!(
            refused,
            Err(DecodeError::DepthExceeded {
                depth_max: 0,
                at: 0
            })
        );
    }
}
