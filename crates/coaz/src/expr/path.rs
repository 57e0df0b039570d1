//! Expressions that only walk from an input to a value: `token.sub`, `params.arguments.?case`, `token["x"]`.
//! Most are; they are read from the input as it was written, without CEL. The result is the one CEL gives, which
//! a property test compares.

use sayso_protocol::Json;

use super::library::{Expr, IdedExpr, LiteralValue, operators};
use super::{ExpressionFault, Inputs};

/// An input variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// `params` of the message.
    Params,
    /// The claims of the validated token.
    Token,
}

impl Root {
    pub(super) fn named(name: &str) -> Option<Root> {
        match name {
            "params" => Some(Root::Params),
            "token" => Some(Root::Token),
            _ => None,
        }
    }
}

/// A walk from an input variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) root: Root,
    pub(crate) steps: Vec<Step>,
}

/// One step to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) key: Box<str>,
    pub(crate) how: How,
}

/// How a step is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// `.key`
    Field,
    /// `["key"]`
    Index,
    /// `.?key` or `[?"key"]`
    Optional,
}

impl Path {
    /// The path this expression is, if it is one.
    pub(super) fn of(expr: &IdedExpr) -> Option<Path> {
        match &expr.expr {
            Expr::Ident(name) => Some(Path { root: Root::named(name)?, steps: Vec::new() }),
            Expr::Select(select) if !select.test => {
                Path::of(&select.operand)?.then(&select.field, How::Field)
            }
            Expr::Call(call) if call.target.is_none() => {
                let [operand, key] = call.args.as_slice() else { return None };
                let how = match call.func_name.as_str() {
                    operators::INDEX => How::Index,
                    operators::OPT_INDEX | operators::OPT_SELECT => How::Optional,
                    _ => return None,
                };
                let Expr::Literal(LiteralValue::String(key)) = &key.expr else { return None };
                Path::of(operand)?.then(key.inner(), how)
            }
            _ => None,
        }
    }

    fn then(mut self, key: &str, how: How) -> Option<Path> {
        self.steps.push(Step { key: key.into(), how });
        Some(self)
    }

    /// The value at the end, nothing when an optional step led nowhere.
    pub(super) fn walk<'a>(&self, inputs: &Inputs<'a>) -> Result<Option<&'a Json>, ExpressionFault> {
        let mut value = inputs.of(self.root);
        let mut optional = false;
        for step in &self.steps {
            optional |= step.how == How::Optional;
            let found = value.get(&step.key);
            value = match (found, value, optional) {
                (Some(found), _, _) => found,
                (None, Json::Object(_) | Json::Array(_), true) => return Ok(None),
                (None, _, true) if step.how != How::Field => return Ok(None),
                // A field of something that has none is a mistake even behind an optional step.
                (None, Json::Object(_), _) | (None, _, true) => {
                    return Err(ExpressionFault::MissingKey(step.key.clone()));
                }
                (None, _, _) => return Err(ExpressionFault::Types),
            };
        }
        Ok(Some(value))
    }

    /// The claim, if this is one claim of the token and nothing more.
    pub(super) fn claim(&self) -> Option<&str> {
        match self.steps.as_slice() {
            [step] if self.root == Root::Token => Some(&step.key),
            _ => None,
        }
    }
}
