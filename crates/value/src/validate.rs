//! The check without a result to keep: what the host does to bytes that it passes on.

use crate::bounds::{Bounds, Summary};
use crate::error::DecodeError;
use crate::walk::walk;

/// Checks that the bytes are exactly one value within the bounds, and builds nothing.
///
/// Accepts what [`decode`](crate::decode) accepts, in constant native stack. It allocates its own stack, which
/// `depth_max` bounds, and the list of the externals that are used.
///
/// Says nothing of what only an engine can know: whether a `RegExp` is a valid pattern, whether a bigint or a string
/// is too long for it.
pub fn validate(input: &[u8], bounds: &Bounds) -> Result<Summary, DecodeError> {
    walk(input, bounds, &mut ())
}
