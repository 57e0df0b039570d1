//! The CEL crate: everything of it that is used here, named in this one file.
//! An upgrade is read against `meter`, whose safety depends on where this library copies values.

pub(super) use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};
pub(super) use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString,
    CelUInt, DYN_TYPE, Kind,
};
pub(super) use ::cel::common::value::{CowVal, Val};
pub(super) use ::cel::{Context, Env, ExecutionError, Value};
