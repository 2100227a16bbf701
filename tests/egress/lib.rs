//! Nothing: the tests are all that this package is for.
