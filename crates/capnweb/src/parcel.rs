//! Values with what they refer to, inside of a connection: parcels, which are whole, and drafts, which wait for promises.
//!
//! Owns how one becomes the other, and how a path leads into a parcel. A tree here is never deeper nor larger than the
//! limits say, because everything that makes one measures it.

use crate::{
    Capability, Payload,
    error::ConvertError,
    handle::{Charge, Ledger, Promise},
    limits::Limits,
    measure::{Measure, check_bytes},
    unshare::unshare,
};
use coracle_value::{Bounds, Value, decode, encode};

/// A value, and what it refers to by index.
pub(crate) struct Parcel<T> {
    pub(crate) value: Value,
    pub(crate) externals: Vec<Capability<T>>,
    measure: Measure,
    charge: Charge,
}

impl<T: Clone> Clone for Parcel<T> {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            externals: self.externals.clone(),
            measure: self.measure,
            charge: self.charge.clone(),
        }
    }
}

/// What is in a draft where a parcel has an external.
pub(crate) enum Slot<T> {
    Capability(Capability<T>),
    Promise(Promise),
}

/// A value in which promises stand for what is not known yet.
pub(crate) struct Draft<T> {
    pub(crate) value: Value,
    pub(crate) slots: Vec<Slot<T>>,
    charge: Charge,
}

/// What is at the end of a path.
pub(crate) enum Followed<'v, T> {
    /// The path leads through a capability, and on.
    Capability(Capability<T>, usize),
    /// Plain data.
    Data(&'v Value),
    /// The path goes into undefined: at this name.
    Undefined(usize),
}

impl<T: Clone> Parcel<T> {
    pub(crate) fn new(
        value: Value,
        externals: Vec<Capability<T>>,
        ledger: &Ledger,
        limits: &Limits,
    ) -> Result<Self, ConvertError> {
        let measure = Measure::of(&value).check(limits)?;
        let bytes = measure.bytes + externals.len() * size_of::<Capability<T>>();
        Ok(Self {
            value,
            externals,
            measure,
            charge: ledger.charge(bytes),
        })
    }

    /// A value of this crate's making, which is small and refers to nothing.
    pub(crate) fn plain(value: Value, ledger: &Ledger) -> Self {
        let measure = Measure::of(&value);
        Self {
            value,
            externals: Vec::new(),
            measure,
            charge: ledger.charge(measure.bytes),
        }
    }

    /// What the driver hands over.
    pub(crate) fn of_payload(
        payload: Payload<T>,
        ledger: &Ledger,
        limits: &Limits,
    ) -> Result<Self, ConvertError> {
        let Payload { bytes, externals } = payload;
        if bytes.is_empty() {
            return Self::new(Value::Undefined, externals, ledger, limits);
        }
        let bounds = Bounds {
            depth_max: limits.value_depth(),
            bytes_max: limits.message_bytes_max,
            externals: u32::try_from(externals.len()).unwrap_or(u32::MAX),
        };
        check_bytes(&bytes, &bounds, limits)?;
        let value = unshare(decode(&bytes, &bounds)?, limits)?;
        Self::new(value, externals, ledger, limits)
    }

    /// What the driver is given.
    pub(crate) fn into_payload(self) -> Payload<T> {
        let bytes = match self.value {
            Value::Undefined => Vec::new(),
            value => encode(&value),
        };
        Payload {
            bytes,
            externals: self.externals,
        }
    }

    /// What the path leads to.
    pub(crate) fn follow(&self, path: &[String]) -> Followed<'_, T> {
        let mut value = &self.value;
        for (at, name) in path.iter().enumerate() {
            value = match value {
                Value::External(index) => return self.capability(*index, at),
                Value::Undefined => return Followed::Undefined(at),
                Value::Object(properties) => {
                    let mut properties = properties.iter().rev();
                    let found = properties.find(|(key, _)| *key == name.as_str());
                    found.map_or(&Value::Undefined, |(_, value)| value)
                }
                Value::Array(members) => name
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| members.get(index))
                    .unwrap_or(&Value::Undefined),
                _ => &Value::Undefined,
            };
        }
        match value {
            Value::External(index) => self.capability(*index, path.len()),
            value => Followed::Data(value),
        }
    }

    /// A part of the value as a value by itself.
    pub(crate) fn part(
        &self,
        value: &Value,
        ledger: &Ledger,
        limits: &Limits,
    ) -> Result<Self, ConvertError> {
        let mut value = value.clone();
        let mut externals = Vec::new();
        for index in externals_mut(&mut value) {
            let capability = self.externals[*index as usize].clone();
            *index = externals.len() as u32;
            externals.push(capability);
        }
        Self::new(value, externals, ledger, limits)
    }

    fn capability(&self, index: u32, at: usize) -> Followed<'_, T> {
        match self.externals.get(index as usize) {
            Some(capability) => Followed::Capability(capability.clone(), at),
            None => Followed::Undefined(at),
        }
    }
}

impl<T: Clone> Draft<T> {
    pub(crate) fn new(
        value: Value,
        slots: Vec<Slot<T>>,
        ledger: &Ledger,
        limits: &Limits,
    ) -> Result<Self, ConvertError> {
        let measure = Measure::of(&value).check(limits)?;
        let bytes = measure.bytes + slots.len() * size_of::<Slot<T>>();
        Ok(Self {
            value,
            slots,
            charge: ledger.charge(bytes),
        })
    }

    /// The promise that it is, if it is nothing else.
    pub(crate) fn sole_promise(&self) -> Option<&Promise> {
        match (&self.value, &self.slots[..]) {
            (Value::External(0), [Slot::Promise(promise)]) => Some(promise),
            _ => None,
        }
    }

    /// An array of drafts.
    pub(crate) fn array(
        drafts: Vec<Self>,
        ledger: &Ledger,
        limits: &Limits,
    ) -> Result<Self, ConvertError> {
        let mut slots = Vec::new();
        let mut members = Vec::with_capacity(drafts.len());
        for mut draft in drafts {
            for index in externals_mut(&mut draft.value) {
                *index += slots.len() as u32;
            }
            slots.append(&mut draft.slots);
            members.push(draft.value);
        }
        Self::new(Value::Array(members), slots, ledger, limits)
    }

    /// Puts what the promises have become in their places. All must be known.
    pub(crate) fn fill<'p>(
        mut self,
        mut known: impl FnMut(&Promise) -> Option<&'p Parcel<T>>,
        ledger: &Ledger,
        limits: &Limits,
    ) -> Result<Parcel<T>, ConvertError>
    where
        T: 'p,
    {
        let mut externals: Vec<Capability<T>> = Vec::new();
        let Limits { members_max, .. } = *limits;
        let depth_max = limits.value_depth();
        let mut added = self.charge.bytes();
        let bytes_max = limits.held_bytes_max;
        let mut members = 0_usize;
        for (place, depth) in places_mut(&mut self.value) {
            let Value::External(index) = place else {
                continue;
            };
            match self.slots.get(*index as usize) {
                Some(Slot::Capability(capability)) => {
                    *index = externals.len() as u32;
                    externals.push(capability.clone());
                }
                Some(Slot::Promise(promise)) => {
                    let Some(parcel) = known(promise) else {
                        continue;
                    };
                    members += parcel.measure.members;
                    added = added.saturating_add(parcel.measure.bytes);
                    // Before it is copied: a value of values of values doubles with each.
                    if members > members_max {
                        return Err(ConvertError::MembersExceeded { members_max });
                    }
                    if added > bytes_max {
                        return Err(ConvertError::HeldExceeded { bytes_max });
                    }
                    if depth + parcel.measure.depth > depth_max {
                        return Err(ConvertError::DepthExceeded { depth_max });
                    }
                    let mut value = parcel.value.clone();
                    for index in externals_mut(&mut value) {
                        *index += externals.len() as u32;
                    }
                    externals.extend(parcel.externals.iter().cloned());
                    *place = value;
                }
                None => {}
            }
        }
        Parcel::new(self.value, externals, ledger, limits)
    }
}

/// The places of externals, and how many arrays, objects and errors are open at each.
fn places_mut(root: &mut Value) -> Vec<(&mut Value, usize)> {
    let mut found = Vec::new();
    let mut pending = vec![(root, 0)];
    while let Some((value, depth)) = pending.pop() {
        if matches!(value, Value::External(_)) {
            found.push((value, depth));
            continue;
        }
        let inner = depth + 1;
        match value {
            Value::Array(members) | Value::Set(members) => {
                pending.extend(members.iter_mut().map(|member| (member, inner)));
            }
            Value::Object(properties) => {
                pending.extend(properties.iter_mut().map(|(_, member)| (member, inner)));
            }
            Value::Map(entries) => {
                let members = entries.iter_mut().flat_map(|(key, value)| [key, value]);
                pending.extend(members.map(|member| (member, inner)));
            }
            Value::Error(error) => {
                let props = error
                    .props
                    .iter_mut()
                    .map(|(_, member)| (member, inner + 1));
                pending.extend(props);
                let members = error.cause.iter_mut().chain(&mut error.errors);
                pending.extend(members.map(|member| (member, inner)));
            }
            Value::Boxed(inside) | Value::Shared(inside) | Value::Interface(_, inside) => {
                pending.push((inside, depth));
            }
            _ => {}
        }
    }
    found
}

/// The indexes of externals in a value.
fn externals_mut(root: &mut Value) -> impl Iterator<Item = &mut u32> {
    places_mut(root)
        .into_iter()
        .filter_map(|(place, _)| match place {
            Value::External(index) => Some(index),
            _ => None,
        })
}
