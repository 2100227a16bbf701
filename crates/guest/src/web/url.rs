//! URLs and `application/x-www-form-urlencoded`, by the `url` crate.

use super::{address::Address, undefined};
use crate::{
    engine::js::{Array, Ctx, Object, Result, Value, function::Func},
    raw,
};
use url::{Position, Url, form_urlencoded, quirks};

pub(super) fn install(object: &Object<'_>) -> Result<()> {
    object.set("urlParse", Func::from(parse))?;
    object.set("urlSet", Func::from(set))?;
    object.set("urlOrigin", Func::from(origin))?;
    object.set("formParse", Func::from(form_parse))?;
    object.set("formSerialize", Func::from(form_serialize))
}

/// `host.urlParse(text, base) -> parts`, or undefined where it is no URL.
fn parse<'js>(ctx: Ctx<'js>, text: Value<'js>, base: Value<'js>) -> Result<Value<'js>> {
    let base = match base.is_undefined() {
        true => None,
        false => match Address::parse(&raw::text_lossy(&base), None) {
            Some(base) => Some(base),
            None => return Ok(undefined(&ctx)),
        },
    };
    match Address::parse(&raw::text_lossy(&text), base.as_ref()) {
        Some(address) => parts(&ctx, &address),
        None => Ok(undefined(&ctx)),
    }
}

/// The href, which is ASCII, and the places of its parts, in the order of url.js.
///
/// (The positions of the password are worked out here: `Position` looks beyond the end of a URL like "a://".)
fn parts<'js>(ctx: &Ctx<'js>, address: &Address) -> Result<Value<'js>> {
    let url = &address.url;
    let at = |position| url[..position].len();
    let username_end = at(Position::AfterUsername);
    let (password, password_end) = match url.password() {
        Some(password) => (username_end + 1, username_end + 1 + password.len()),
        None => (username_end, username_end),
    };
    let places = [
        at(Position::AfterScheme),
        at(Position::BeforeUsername),
        username_end,
        password,
        password_end,
        at(Position::BeforeHost),
        at(Position::AfterHost),
        at(Position::BeforePort),
        at(Position::AfterPort),
        at(Position::BeforePath),
        at(Position::AfterPath) + address.slashes,
        at(Position::AfterQuery) + address.slashes,
    ];
    let mut parts = vec![raw::string(ctx, address.href().as_bytes())?];
    parts.extend(places.map(|place| raw::number(ctx, place as f64)));
    raw::array(ctx, &parts)
}

/// `host.urlSet(href, part, text) -> parts`. What the standard ignores leaves the URL as it was.
fn set<'js>(
    ctx: Ctx<'js>,
    href: Value<'js>,
    part: Value<'js>,
    text: Value<'js>,
) -> Result<Value<'js>> {
    let Some(mut address) = Address::parse(&raw::text_lossy(&href), None) else {
        return Ok(undefined(&ctx));
    };
    let url = &mut address.url;
    let text = raw::text_lossy(&text);
    // A setter that fails has changed nothing, which is what the standard asks for.
    let _: std::result::Result<(), ()> = match raw::text_lossy(&part).as_str() {
        "protocol" => address.set_protocol(&text),
        "username" => quirks::set_username(url, &text),
        "password" => quirks::set_password(url, &text),
        "host" => quirks::set_host(url, host_of_file(url, &text)),
        "hostname" => quirks::set_hostname(url, host_of_file(url, &text)),
        "port" => quirks::set_port(url, &text),
        "pathname" => {
            address.set_path(&text);
            Ok(())
        }
        "search" => {
            quirks::set_search(url, &text);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(url, &text);
            Ok(())
        }
        // What URLSearchParams serialise to.
        "query" => {
            url.set_query(Some(text.as_str()).filter(|text| !text.is_empty()));
            Ok(())
        }
        _ => Err(()),
    };
    parts(&ctx, &address)
}

/// A file's host is none where the text begins with its end; the crate would ignore it.
fn host_of_file<'t>(url: &Url, text: &'t str) -> &'t str {
    let is_none = text.starts_with(['/', '\\', '?', '#']);
    if is_none && url.scheme() == "file" {
        ""
    } else {
        text
    }
}

/// `host.urlOrigin(href) -> text`
fn origin<'js>(ctx: Ctx<'js>, href: Value<'js>) -> Result<Value<'js>> {
    match Url::parse(&raw::text_lossy(&href)) {
        Ok(url) => raw::string(&ctx, quirks::origin(&url).as_bytes()),
        Err(_) => raw::string(&ctx, b"null"),
    }
}

/// `host.formParse(text) -> [name, value, …]`, which inherits nothing.
fn form_parse<'js>(ctx: Ctx<'js>, text: Value<'js>) -> Result<Value<'js>> {
    let text = raw::text_lossy(&text);
    let mut flat = Vec::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        flat.push(raw::string(&ctx, name.as_bytes())?);
        flat.push(raw::string(&ctx, value.as_bytes())?);
    }
    let list = raw::array(&ctx, &flat)?;
    if let Some(list) = list.as_object() {
        list.set_prototype(None)?;
    }
    Ok(list)
}

/// `host.formSerialize([name, value, …]) -> text`
fn form_serialize<'js>(ctx: Ctx<'js>, flat: Array<'js>) -> Result<Value<'js>> {
    let mut serializer = form_urlencoded::Serializer::new(String::new());
    for at in (0..flat.len()).step_by(2) {
        let name = raw::text_lossy(&flat.get(at)?);
        let value = raw::text_lossy(&flat.get(at + 1)?);
        serializer.append_pair(&name, &value);
    }
    raw::string(&ctx, serializer.finish().as_bytes())
}
