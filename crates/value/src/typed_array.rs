//! The kinds of typed array and their RFC 8746 tags.
//!
//! Owns the mapping in both directions. Elements are little-endian everywhere outside the decoder.

use crate::tag;

/// Which typed array a [`Value::TypedArray`](crate::Value::TypedArray) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "each variant is the JavaScript class without its suffix `Array`"
)]
pub enum TypedArrayKind {
    Uint8,
    Uint8Clamped,
    Int8,
    Uint16,
    Int16,
    Uint32,
    Int32,
    BigUint64,
    BigInt64,
    Float16,
    Float32,
    Float64,
}

impl TypedArrayKind {
    /// Every kind, in the order of their tags.
    pub const ALL: [Self; 12] = [
        Self::Uint8,
        Self::Uint8Clamped,
        Self::Uint16,
        Self::Uint32,
        Self::BigUint64,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::BigInt64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
    ];

    /// The tag that an encoder writes: little-endian elements.
    pub const fn tag(self) -> u64 {
        match self {
            Self::Uint8 => tag::UINT8_ARRAY,
            Self::Uint8Clamped => tag::UINT8_CLAMPED_ARRAY,
            Self::Int8 => tag::INT8_ARRAY,
            Self::Uint16 => tag::UINT16_ARRAY,
            Self::Int16 => tag::INT16_ARRAY,
            Self::Uint32 => tag::UINT32_ARRAY,
            Self::Int32 => tag::INT32_ARRAY,
            Self::BigUint64 => tag::BIG_UINT64_ARRAY,
            Self::BigInt64 => tag::BIG_INT64_ARRAY,
            Self::Float16 => tag::FLOAT16_ARRAY,
            Self::Float32 => tag::FLOAT32_ARRAY,
            Self::Float64 => tag::FLOAT64_ARRAY,
        }
    }

    /// The kind behind a tag, and whether the tag says that the elements are big-endian.
    pub const fn from_tag(number: u64) -> Option<(Self, bool)> {
        Some(match number {
            tag::UINT8_ARRAY => (Self::Uint8, false),
            tag::UINT8_CLAMPED_ARRAY => (Self::Uint8Clamped, false),
            tag::INT8_ARRAY => (Self::Int8, false),
            tag::UINT16_ARRAY => (Self::Uint16, false),
            tag::INT16_ARRAY => (Self::Int16, false),
            tag::UINT32_ARRAY => (Self::Uint32, false),
            tag::INT32_ARRAY => (Self::Int32, false),
            tag::BIG_UINT64_ARRAY => (Self::BigUint64, false),
            tag::BIG_INT64_ARRAY => (Self::BigInt64, false),
            tag::FLOAT16_ARRAY => (Self::Float16, false),
            tag::FLOAT32_ARRAY => (Self::Float32, false),
            tag::FLOAT64_ARRAY => (Self::Float64, false),
            tag::UINT16_ARRAY_BE => (Self::Uint16, true),
            tag::INT16_ARRAY_BE => (Self::Int16, true),
            tag::UINT32_ARRAY_BE => (Self::Uint32, true),
            tag::INT32_ARRAY_BE => (Self::Int32, true),
            tag::BIG_UINT64_ARRAY_BE => (Self::BigUint64, true),
            tag::BIG_INT64_ARRAY_BE => (Self::BigInt64, true),
            tag::FLOAT16_ARRAY_BE => (Self::Float16, true),
            tag::FLOAT32_ARRAY_BE => (Self::Float32, true),
            tag::FLOAT64_ARRAY_BE => (Self::Float64, true),
            _ => return None,
        })
    }

    /// Bytes of one element.
    pub const fn element_bytes(self) -> usize {
        match self {
            Self::Uint8 | Self::Uint8Clamped | Self::Int8 => 1,
            Self::Uint16 | Self::Int16 | Self::Float16 => 2,
            Self::Uint32 | Self::Int32 | Self::Float32 => 4,
            Self::BigUint64 | Self::BigInt64 | Self::Float64 => 8,
        }
    }

    /// The JavaScript class.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uint8 => "Uint8Array",
            Self::Uint8Clamped => "Uint8ClampedArray",
            Self::Int8 => "Int8Array",
            Self::Uint16 => "Uint16Array",
            Self::Int16 => "Int16Array",
            Self::Uint32 => "Uint32Array",
            Self::Int32 => "Int32Array",
            Self::BigUint64 => "BigUint64Array",
            Self::BigInt64 => "BigInt64Array",
            Self::Float16 => "Float16Array",
            Self::Float32 => "Float32Array",
            Self::Float64 => "Float64Array",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_the_tag_that_it_writes() {
        for kind in TypedArrayKind::ALL {
            assert_eq!(
                TypedArrayKind::from_tag(kind.tag()),
                Some((kind, false)),
                "{}",
                kind.name()
            );
        }
    }

    #[test]
    fn tags_agree_with_the_bit_layout_of_rfc_8746() {
        // 0b010_f_s_e_ll: float, signed, little-endian, log2 of the element's size (for floats one more).
        for number in 64..=87 {
            let Some((kind, big_endian)) = TypedArrayKind::from_tag(number) else {
                assert!([76, 83, 87].contains(&number), "tag {number}");
                continue;
            };
            let float = number & 0b1_0000 != 0;
            let element_bytes = 1_usize << ((number & 0b11) + u64::from(float));
            assert_eq!(kind.element_bytes(), element_bytes, "tag {number}");
            assert_eq!(kind.name().starts_with("Float"), float, "tag {number}");
            if element_bytes > 1 {
                assert_eq!(big_endian, number & 0b100 == 0, "tag {number}");
            }
        }
    }
}
