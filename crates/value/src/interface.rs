//! Objects of the web platform that are values: which there are, and what is in them.
//!
//! In the bytes each is a tag around an ordinary array or map; `schema/value.md` lists the fields. Whether they make sense
//! is for who builds the object to find out.

use crate::tag;

/// A class of the web platform whose objects are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// `Headers`: an array of `[name, value]`.
    Headers,
    /// `Request`: a map.
    Request,
    /// `Response`: a map.
    Response,
    /// `Blob`, or `File`: a map.
    Blob,
}

impl Interface {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Headers, Self::Request, Self::Response, Self::Blob];

    /// Its tag.
    #[must_use]
    pub const fn tag(self) -> u64 {
        match self {
            Self::Headers => tag::HEADERS,
            Self::Request => tag::REQUEST,
            Self::Response => tag::RESPONSE,
            Self::Blob => tag::BLOB,
        }
    }

    /// Whether its content is a map, and not an array.
    #[must_use]
    pub const fn has_keys(self) -> bool {
        !matches!(self, Self::Headers)
    }

    pub(crate) fn from_tag(tag: u64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|interface| interface.tag() == tag)
    }
}
