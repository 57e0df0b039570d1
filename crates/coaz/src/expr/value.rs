//! Between JSON and CEL. Integers that fit become signed, so that arithmetic on them works; a number that neither
//! 64 bits nor a double can say is refused (D-4). On the way back only JSON passes: optionals are unwrapped, and
//! bytes, times, types and numbers that are none are refused rather than spelled (D-35).

use std::collections::HashMap;

use sayso_protocol::Json;

use super::library::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString,
    CelUInt, Kind, Val,
};
use super::{ExpressionFault, MAX_RESULT};

/// One JSON value, nothing at all, or neither.
pub(super) type Outcome = Result<Option<Json>, ExpressionFault>;

/// Nesting of a result.
const DEEPEST: u32 = 64;

/// An input as a value of the library, its texts borrowed.
pub(super) fn input(json: &Json) -> Result<Box<dyn Val + '_>, ExpressionFault> {
    Ok(match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(value) => Box::new(CelBool::from(*value)),
        Json::String(text) => Box::new(CelString::from(text.as_str())),
        Json::Number(number) => {
            if let Some(value) = number.as_i64() {
                Box::new(CelInt::from(value))
            } else if let Some(value) = number.as_u64() {
                Box::new(CelUInt::from(value))
            } else if let Some(value) = number.exact_f64() {
                Box::new(CelDouble::from(value))
            } else {
                return Err(ExpressionFault::Number);
            }
        }
        Json::Array(elements) => {
            let elements: Result<Vec<_>, _> = elements.iter().map(input).collect();
            Box::new(CelList::from(elements?))
        }
        Json::Object(members) => {
            let mut map = HashMap::with_capacity(members.len());
            for (name, value) in members {
                map.insert(CelMapKey::from(name.as_str()), input(value)?);
            }
            Box::new(CelMap::from(map))
        }
    })
}

/// Steps a copy of the value costs: about one for every sixteen bytes it takes.
pub(super) fn weight(value: &dyn Val) -> u64 {
    match value.get_type().kind() {
        Kind::String => text_weight(value.downcast_ref::<CelString>().map_or(0, |text| text.inner().len())),
        Kind::Bytes => text_weight(value.downcast_ref::<CelBytes>().map_or(0, |bytes| bytes.inner().len())),
        Kind::List => {
            let list = value.downcast_ref::<CelList>();
            let elements = list.into_iter().flat_map(|list| list.inner().iter());
            elements.fold(3, |sum: u64, element| sum.saturating_add(1 + weight(element.as_ref())))
        }
        Kind::Map => {
            let map = value.downcast_ref::<CelMap>();
            let entries = map.into_iter().flat_map(|map| map.inner().iter());
            entries.fold(5, |sum: u64, (key, value)| {
                sum.saturating_add(4 + weight(key.inner()) + weight(value.as_ref()))
            })
        }
        _ => match value.downcast_ref::<CelOptional>() {
            Some(optional) => 2 + optional.inner().map_or(0, weight),
            None => 2,
        },
    }
}

/// The keys of a map in order: texts by their bytes, after numbers and truth values by their spelling.
pub(super) fn keys<'v>(value: &(dyn Val + 'v)) -> Option<CelList<'v>> {
    let mut keys: Vec<&CelMapKey<'v>> = value.downcast_ref::<CelMap>()?.inner().keys().collect();
    keys.sort_by_cached_key(|key| match key.inner().downcast_ref::<CelString>() {
        Some(text) => (true, text.inner().to_owned()),
        None => (false, format!("{:?}", key.inner())),
    });
    Some(CelList::from(keys.into_iter().map(|key| key.inner().clone_as_boxed()).collect::<Vec<_>>()))
}

fn text_weight(bytes: usize) -> u64 {
    4 + u64::try_from(bytes / 16).unwrap_or(u64::MAX)
}

/// Steps a copy of a JSON value costs, as [`weight`] counts them.
pub(super) fn json_weight(value: &Json) -> u64 {
    match value {
        Json::String(text) => text_weight(text.len()),
        Json::Array(elements) => elements.iter().fold(3, |sum, element| sum + 1 + json_weight(element)),
        Json::Object(members) => members
            .iter()
            .fold(5, |sum, (name, value)| sum + 4 + text_weight(name.len()) + json_weight(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => 2,
    }
}

/// Bytes a value takes when it is written, or why it cannot be: too many, or a number nothing can hold.
pub(super) fn size(value: &Json) -> Result<usize, ExpressionFault> {
    Ok(match value {
        Json::Null => 4,
        Json::Bool(_) => 5,
        Json::String(text) => text.len() + 2,
        Json::Number(number) => {
            let fits = number.as_i64().is_some() || number.as_u64().is_some() || number.exact_f64().is_some();
            if !fits {
                return Err(ExpressionFault::Number);
            }
            number.text().len()
        }
        Json::Array(elements) => elements.iter().try_fold(2, |sum, element| Ok(sum + 1 + size(element)?))?,
        Json::Object(members) => {
            members.iter().try_fold(2, |sum, (name, value)| Ok(sum + name.len() + 4 + size(value)?))?
        }
    })
}

/// What the value of a whole expression comes to.
pub(super) fn outcome(value: &dyn Val) -> Outcome {
    if let Some(optional) = value.downcast_ref::<CelOptional>() {
        return optional.inner().map_or(Ok(None), outcome);
    }
    let json = output(value, DEEPEST)?;
    if size(&json)? > MAX_RESULT {
        return Err(ExpressionFault::ResultTooLarge);
    }
    Ok(Some(json))
}

fn output(value: &dyn Val, room: u32) -> Result<Json, ExpressionFault> {
    let room = room.checked_sub(1).ok_or(ExpressionFault::ResultTooLarge)?;
    let kind = value.get_type().kind();
    let none = || ExpressionFault::NotJson("a value");
    match kind {
        Kind::NullType => Ok(Json::Null),
        Kind::Boolean => value.downcast_ref::<CelBool>().map(|it| Json::Bool(*it.inner())).ok_or_else(none),
        Kind::Int => {
            value.downcast_ref::<CelInt>().map(|it| (*it.inner()).into()).map(number).ok_or_else(none)
        }
        Kind::UInt => {
            value.downcast_ref::<CelUInt>().map(|it| (*it.inner()).into()).map(number).ok_or_else(none)
        }
        Kind::Double => {
            let double = value.downcast_ref::<CelDouble>().map_or(f64::NAN, |it| *it.inner());
            serde_json::Number::from_f64(double)
                .map(number)
                .ok_or(ExpressionFault::NotJson("a number that is none or infinite"))
        }
        Kind::String => {
            value.downcast_ref::<CelString>().map(|it| Json::String(it.inner().to_owned())).ok_or_else(none)
        }
        Kind::List => {
            let list = value.downcast_ref::<CelList>().ok_or_else(none)?;
            let elements: Result<Vec<_>, _> =
                list.inner().iter().map(|element| output(element.as_ref(), room)).collect();
            Ok(Json::Array(elements?))
        }
        Kind::Map => {
            let map = value.downcast_ref::<CelMap>().ok_or_else(none)?;
            let mut members = Vec::with_capacity(map.inner().len());
            for (key, value) in map.inner() {
                let Some(name) = key.inner().downcast_ref::<CelString>() else {
                    return Err(ExpressionFault::NotJson("a map whose keys are not strings"));
                };
                members.push((name.inner().to_owned(), output(value.as_ref(), room)?));
            }
            // The library's maps have no order; ours is the same for the same inputs.
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Ok(Json::Object(members))
        }
        _ => Err(ExpressionFault::NotJson(named(kind))),
    }
}

fn number(number: serde_json::Number) -> Json {
    Json::from(serde_json::Value::Number(number))
}

fn named(kind: Kind) -> &'static str {
    match kind {
        Kind::Bytes => "bytes",
        Kind::Timestamp => "a timestamp",
        Kind::Duration => "a duration",
        Kind::Type => "a type",
        Kind::Opaque => "an optional inside a list or map",
        _ => "a value",
    }
}
