//! Objects of the web platform that are copied, between the codec and the prelude's `http.js`.

use crate::{
    engine::js::{Ctx, Result, Value},
    state,
};
use coracle_value::Interface;

/// What `http.js` calls a class.
pub(crate) fn number_of(interface: Interface) -> u32 {
    match interface {
        Interface::Headers => 0,
        Interface::Request => 1,
        Interface::Response => 2,
        Interface::Blob => 3,
    }
}

/// The class of an object and what it is copied by, if it is one of them. Takes the body out of requests and responses;
/// a clone refuses these.
pub(crate) fn content_of<'js>(
    ctx: &Ctx<'js>,
    object: &Value<'js>,
    is_clone: bool,
) -> Result<Option<(Interface, Value<'js>)>> {
    let found: Value = state::get()
        .hooks
        .interface_content(ctx)?
        .call((object.clone(), is_clone))?;
    let Some(parts) = found.as_array() else {
        return Ok(None);
    };
    let number: u32 = parts.get(0)?;
    let interface = Interface::ALL
        .into_iter()
        .find(|interface| number_of(*interface) == number);
    Ok(match interface {
        Some(interface) => Some((interface, parts.get(1)?)),
        None => None,
    })
}
