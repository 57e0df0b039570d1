//! Checks of a listing for authors of mappings.
