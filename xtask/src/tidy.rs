//! The rules of the house, run on the tree as it stands.

use anyhow::Result;

use crate::place::Place;

/// Prints every finding; hands back how many there are.
pub fn report(_place: &Place) -> Result<usize> {
    Ok(0)
}
