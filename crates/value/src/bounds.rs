//! What a reader is willing to take, and what a check found.
//!
//! Owns the bounds' defaults and the ceiling that no bound can lift.

/// No value is nested deeper, whatever [`Bounds::depth_max`] says.
///
/// A [`Value`](crate::Value) is dropped by recursion; this many levels fit a stack of 512 KiB also without
/// optimisation, which `tests/depth.rs` shows.
pub const DEPTH_CEILING: usize = 1_000;

/// What a reader is willing to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Arrays and maps that may be open at once; tags don't count. Default 512, which no honest value comes near;
    /// never more than [`DEPTH_CEILING`].
    pub depth_max: usize,
    /// Length of the input, or of the JSON text that is written. Default 32 MiB: what is larger belongs in a stream.
    pub bytes_max: usize,
    /// Entries in the table of externals: each index must be below this. Default 0: no value refers to any.
    pub externals: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            depth_max: 512,
            bytes_max: 32 << 20,
            externals: 0,
        }
    }
}

impl Bounds {
    pub(crate) fn depth_effective(&self) -> usize {
        self.depth_max.min(DEPTH_CEILING)
    }
}

/// What [`validate`](crate::validate) saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Arrays and maps that were open at once at most.
    pub depth: usize,
    /// Objects that are marked as shared.
    pub shared: u32,
    /// The indexes of the externals that are referred to, in ascending order, each once.
    pub externals_used: Vec<u32>,
}

impl Summary {
    /// The first entry of a table of this size that the value doesn't refer to.
    pub fn external_unused(&self, externals: u32) -> Option<u32> {
        (0..externals)
            .zip(
                self.externals_used
                    .iter()
                    .map(Some)
                    .chain(std::iter::repeat(None)),
            )
            .find_map(|(index, used)| (used != Some(&index)).then_some(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unused_external_is_found() {
        let summary = Summary {
            externals_used: vec![0, 1, 3],
            ..Summary::default()
        };
        assert_eq!(summary.external_unused(2), None);
        assert_eq!(summary.external_unused(3), Some(2));
        assert_eq!(summary.external_unused(4), Some(2));
        assert_eq!(Summary::default().external_unused(0), None);
        assert_eq!(Summary::default().external_unused(1), Some(0));
    }
}
