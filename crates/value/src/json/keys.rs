//! Repeated keys of an object: the last value counts, in the place of the first.

use std::collections::{HashMap, HashSet};

use crate::text::Text;
use crate::value::Value;

/// Compares pairwise where there are few keys, which is nearly always.
pub(super) fn has_repeated_key(properties: &[(Text, Value)]) -> bool {
    if properties.len() <= 16 {
        let mut keys = properties.iter().map(|(key, _)| key).enumerate();
        return keys.any(|(index, key)| {
            properties[..index]
                .iter()
                .any(|(earlier, _)| earlier == key)
        });
    }
    let mut seen = HashSet::with_capacity(properties.len());
    !properties.iter().all(|(key, _)| seen.insert(key))
}

/// Of each repeated key keeps the last property, in the place of the first.
pub(super) fn keep_last<T>(
    properties: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> &Text,
) -> Vec<T> {
    let mut places: HashMap<Text, usize> = HashMap::new();
    let mut kept = Vec::new();
    for property in properties {
        match places.get(key(&property)) {
            Some(place) => kept[*place] = property,
            None => {
                places.insert(key(&property).clone(), kept.len());
                kept.push(property);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(count: u32) -> Vec<(Text, Value)> {
        (0..count)
            .map(|index| (Text::from(format!("k{index}")), Value::from(index)))
            .collect()
    }

    #[test]
    fn a_repeated_key_is_found_among_few_and_among_many() {
        for count in [2, 16, 17, 1000] {
            let mut properties = properties(count);
            assert!(!has_repeated_key(&properties));
            properties.push(("k0".into(), Value::Null));
            assert!(has_repeated_key(&properties));
            let kept = keep_last(properties, |(key, _)| key);
            assert_eq!(kept.len(), count as usize);
            assert_eq!(kept[0], ("k0".into(), Value::Null));
        }
    }
}
