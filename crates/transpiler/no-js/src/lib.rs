//! Stands in for the crate of this name, whose module would import the JavaScript around it, which the transpiler does not
//! have. What oxc knows of browsers asks for the date, and is not used here: this is always the beginning of 1970.

#![allow(missing_docs, reason = "named as in the crate that it stands in for")]

pub struct Date;

impl Date {
    pub fn now() -> f64 {
        0.0
    }

    pub fn new_0() -> Self {
        Self
    }

    pub fn set_time(&self, _: f64) -> f64 {
        0.0
    }

    pub fn get_full_year(&self) -> u32 {
        1970
    }

    pub fn get_month(&self) -> u32 {
        0
    }

    pub fn set_full_year_with_month(&self, _: u32, _: i32) -> f64 {
        0.0
    }
}
