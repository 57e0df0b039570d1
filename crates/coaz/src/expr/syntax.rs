//! What an expression may consist of, checked once after parsing: its size, the names and functions it uses.
//! The walk does not recurse, since nothing is known yet of how deep the tree is (D-35).

use std::collections::BTreeSet;

use super::library::{EntryExpr, Expr, IdedExpr, LiteralValue};
use super::path::{Path, Root};
use super::{ExpressionFault, MAX_DEPTH, MAX_NODES};

/// Functions of the standard library that cannot reach outside, and operators by the names the parser gives them.
const FUNCTIONS: &[&str] = &[
    "_?_:_",
    "_&&_",
    "_||_",
    "!_",
    "_-_",
    "_+_",
    "_*_",
    "_/_",
    "_%_",
    "_==_",
    "_!=_",
    "_>=_",
    "_<=_",
    "_>_",
    "_<_",
    "-_",
    "_[_]",
    "_[?_]",
    "_?._",
    "@in",
    "@not_strictly_false",
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "bytes",
    "dyn",
    "type",
    "timestamp",
    "duration",
    "getFullYear",
    "getMonth",
    "getDayOfYear",
    "getDayOfMonth",
    "getDate",
    "getDayOfWeek",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
    "hasValue",
    "value",
    "or",
    "orValue",
];

/// Names of types, which are values in CEL.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// What is known of an expression that may be evaluated.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) nodes: u64,
    /// Every walk from an input that is written in it, longest first.
    pub(super) reads: Vec<Path>,
    /// Names and texts that stand in it, and may therefore be repeated to whoever sees a fault.
    pub(super) words: BTreeSet<Box<str>>,
}

/// The expressions directly inside.
pub(super) fn children(expr: &IdedExpr) -> Vec<&IdedExpr> {
    match &expr.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(c) => {
            vec![&c.iter_range, &c.accu_init, &c.loop_cond, &c.loop_step, &c.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map
            .entries
            .iter()
            .flat_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
                EntryExpr::StructField(field) => vec![&field.value],
            })
            .collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Vec::new(),
    }
}

/// How many nodes a tree has, those of a loop's body not counted: they are paid for at each turn.
pub(super) fn straight_nodes(expr: &IdedExpr) -> u64 {
    match &expr.expr {
        Expr::Comprehension(c) => {
            1 + straight_nodes(&c.iter_range) + straight_nodes(&c.accu_init) + straight_nodes(&c.result)
        }
        _ => 1 + children(expr).into_iter().map(straight_nodes).sum::<u64>(),
    }
}

/// One name that a loop binds, and the names bound around it.
struct Bound<'a> {
    names: Vec<&'a str>,
}

/// Checks a parsed expression.
pub(super) fn survey(root: &IdedExpr) -> Result<Survey, ExpressionFault> {
    let mut survey = Survey::default();
    let mut open = vec![(root, 1, Bound { names: Vec::new() }, false)];
    while let Some((expr, depth, bound, in_path)) = open.pop() {
        survey.nodes += 1;
        if survey.nodes > MAX_NODES {
            return Err(ExpressionFault::TooManyNodes);
        }
        if depth > MAX_DEPTH {
            return Err(ExpressionFault::TooDeep);
        }
        check(expr, &bound, &mut survey.words)?;
        let path = if in_path { None } else { Path::of(expr).filter(|path| !bound.hides(path.root)) };
        let in_path = in_path || path.is_some();
        survey.reads.extend(path);
        let inner = bound.inside(expr);
        for child in children(expr) {
            let names = if is_body(expr, child) { inner.names.clone() } else { bound.names.clone() };
            open.push((child, depth + 1, Bound { names }, in_path));
        }
    }
    Ok(survey)
}

impl<'a> Bound<'a> {
    fn inside(&self, expr: &'a IdedExpr) -> Bound<'a> {
        let mut names = self.names.clone();
        if let Expr::Comprehension(c) = &expr.expr {
            names.extend([c.iter_var.as_str(), c.accu_var.as_str()]);
        }
        Bound { names }
    }

    fn hides(&self, root: Root) -> bool {
        self.names.iter().any(|name| Root::named(name) == Some(root))
    }
}

/// Whether the names a loop binds can be seen in `child`.
fn is_body(expr: &IdedExpr, child: &IdedExpr) -> bool {
    match &expr.expr {
        Expr::Comprehension(c) => {
            [&c.loop_cond, &c.loop_step, &c.result].into_iter().any(|body| std::ptr::eq(body, child))
        }
        _ => false,
    }
}

fn check(expr: &IdedExpr, bound: &Bound<'_>, words: &mut BTreeSet<Box<str>>) -> Result<(), ExpressionFault> {
    match &expr.expr {
        Expr::Ident(name) => {
            let known = Root::named(name).is_some()
                || TYPES.contains(&name.as_str())
                || bound.names.contains(&name.as_str())
                || name == "optional";
            if !known {
                return Err(ExpressionFault::UnknownName(name.as_str().into()));
            }
        }
        Expr::Call(call) => {
            let of_optional = call.target.as_deref().is_some_and(is_optional_namespace)
                && ["of", "none", "ofNonZeroValue"].contains(&call.func_name.as_str());
            if !of_optional && !FUNCTIONS.contains(&call.func_name.as_str()) {
                return Err(ExpressionFault::UnknownFunction(call.func_name.as_str().into()));
            }
        }
        Expr::Select(select) => {
            words.insert(select.field.as_str().into());
        }
        Expr::Literal(LiteralValue::String(text)) => {
            words.insert(text.inner().into());
        }
        Expr::Struct(_) => return Err(ExpressionFault::Syntax),
        Expr::Unspecified => return Err(ExpressionFault::Syntax),
        Expr::Map(map) if map.entries.iter().any(|entry| matches!(entry.expr, EntryExpr::StructField(_))) => {
            return Err(ExpressionFault::Syntax);
        }
        Expr::Literal(_) | Expr::List(_) | Expr::Map(_) | Expr::Comprehension(_) => {}
    }
    Ok(())
}

/// `optional`, as in `optional.of(x)`: the library takes this name before any variable.
pub(super) fn is_optional_namespace(expr: &IdedExpr) -> bool {
    matches!(&expr.expr, Expr::Ident(name) if name == "optional")
}
