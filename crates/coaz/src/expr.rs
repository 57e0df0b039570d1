//! Expressions: compiled once, evaluated within a budget, yielding one JSON value or nothing.
//!
//! They are written by the server that is to be constrained, over arguments chosen by its caller, so both are
//! hostile (D-35): what an expression may consist of is checked when it is compiled, and what it may cost is metered
//! when it runs. No fault repeats a value: an argument or claim never leaves through an error.

mod library;
mod meter;
mod path;
mod pattern;
mod syntax;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use sayso_protocol::Json;

use library::{Context, Env, ExecutionError, IdedExpr};
use meter::Failure;
pub(crate) use path::{How, Path, Root};

/// Bytes of one expression.
pub const MAX_SOURCE: usize = 2 << 10;
/// Nodes of one expression, macros expanded.
pub const MAX_NODES: u64 = 512;
/// Nesting of one expression, macros expanded.
pub const MAX_DEPTH: u32 = 32;
/// Bytes of one result.
pub const MAX_RESULT: usize = 64 << 10;
/// Steps the expressions of one request share: nodes evaluated, and sixteen bytes copied or searched count as one.
pub const BUDGET: u64 = 100_000;

/// Stack for reading and rewriting a tree: the parser recurses along chains as long as the source.
const STACK: usize = 64 << 20;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(meter::environment()));

/// Why an expression cannot be used, or gave no value. It repeats words of the expression alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionFault {
    /// More than [`MAX_SOURCE`] bytes.
    #[error("longer than {MAX_SOURCE} bytes")]
    TooLong,
    /// More than [`MAX_NODES`] nodes.
    #[error("more than {MAX_NODES} parts")]
    TooManyNodes,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH}")]
    TooDeep,
    /// Not CEL, or a construct with no use here.
    #[error("not a well-formed expression")]
    Syntax,
    /// A variable other than `params` and `token`.
    #[error("unknown name '{0}'")]
    UnknownName(Box<str>),
    /// A function outside the standard library.
    #[error("unknown function '{0}'")]
    UnknownFunction(Box<str>),
    /// Plain selection of a member that is not there.
    #[error("no such key '{0}'")]
    MissingKey(Box<str>),
    /// The same, of a member whose name was computed.
    #[error("no such key")]
    MissingComputedKey,
    /// An operation on values it is not defined for.
    #[error("no such operation on these types")]
    Types,
    /// A division by zero, an overflow or an index that is out of bounds.
    #[error("a number is out of range")]
    Range,
    /// Any other fault while evaluating.
    #[error("it cannot be evaluated")]
    Evaluation,
    /// The budget of the request is spent.
    #[error("it takes too many steps")]
    Budget,
    /// The value has no form in JSON.
    #[error("it yields {0}, which is not JSON")]
    NotJson(&'static str),
    /// The value is larger than [`MAX_RESULT`].
    #[error("it yields more than {MAX_RESULT} bytes")]
    ResultTooLarge,
    /// A number in the inputs that neither 64 bits nor a double can hold.
    #[error("a number cannot be represented exactly")]
    Number,
}

/// What expressions are evaluated over.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) params: &'a Json,
    pub(crate) token: &'a Json,
}

impl<'a> Inputs<'a> {
    fn of(&self, root: Root) -> &'a Json {
        match root {
            Root::Params => self.params,
            Root::Token => self.token,
        }
    }
}

/// A compiled expression.
pub struct Expression {
    source: Box<str>,
    form: Form,
    reads: Vec<Path>,
    words: BTreeSet<Box<str>>,
}

enum Form {
    Path(Path),
    Program { tree: Box<IdedExpr>, nodes: u64 },
}

impl Expression {
    /// Compiles the text after the `$`. Call it inside [`roomy`].
    pub(crate) fn compile(source: &str) -> Result<Expression, ExpressionFault> {
        if source.len() > MAX_SOURCE {
            return Err(ExpressionFault::TooLong);
        }
        let parse = || ENVIRONMENT.parser().max_recursion_depth(MAX_DEPTH_OF_RULES).parse(source);
        let parsed = catch_unwind(AssertUnwindSafe(parse)).map_err(|_| ExpressionFault::Syntax)?;
        let tree = parsed.map_err(|_| ExpressionFault::Syntax)?;
        let survey = syntax::survey(&tree)?;
        let form = match Path::of(&tree) {
            Some(path) => Form::Path(path),
            None => {
                let (tree, nodes) = meter::rewrite(tree)?;
                Form::Program { tree: Box::new(tree), nodes }
            }
        };
        Ok(Expression { source: source.into(), form, reads: survey.reads, words: survey.words })
    }

    /// The text that was compiled, without the `$`.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The claim whose value this is, however it is spelled, if it is a claim of the token and nothing else.
    pub(crate) fn claim(&self) -> Option<&str> {
        match &self.form {
            Form::Path(path) => path.claim(),
            Form::Program { .. } => None,
        }
    }

    /// Every walk from an input that is written in it.
    pub(crate) fn reads(&self) -> &[Path] {
        &self.reads
    }

    /// Whether nothing but the token goes into it.
    pub(crate) fn is_of_token(&self) -> bool {
        !self.reads.is_empty() && self.reads.iter().all(|path| path.root == Root::Token)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.source)
    }
}

/// Bytes a value takes when it is written.
///
/// # Errors
/// When it holds a number that cannot be written without rounding.
pub(crate) fn writable(value: &Json) -> Result<usize, ExpressionFault> {
    value::size(value)
}

/// Rules of the grammar inside one another, which is how the parser counts; each level of an expression takes one.
const MAX_DEPTH_OF_RULES: u16 = 96;

/// Runs `work` with stack enough for the parser and for dropping what it made of a long chain.
///
/// Nothing when no thread can be had.
pub(crate) fn roomy<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok()?;
        thread.join().ok()
    })
}

/// Evaluates the expressions of one request within one budget.
pub(crate) struct Evaluator<'a> {
    inputs: Inputs<'a>,
    steps: u64,
    scope: Option<Context<'a, 'a>>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(inputs: Inputs<'a>, steps: u64) -> Self {
        Evaluator { inputs, steps, scope: None }
    }

    /// Steps that are left.
    pub(crate) fn left(&self) -> u64 {
        self.steps
    }

    /// One JSON value, or nothing where an optional step led nowhere.
    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Result<Option<Json>, ExpressionFault> {
        match &expression.form {
            Form::Path(path) => self.walk(path),
            Form::Program { tree, nodes } => {
                self.charge(*nodes)?;
                self.run(tree).map_err(|failure| match failure {
                    Ended::Fault(fault) => fault,
                    Ended::Failure(Failure::Spent) => ExpressionFault::Budget,
                    Ended::Failure(Failure::Library(error)) => plain(&error, &expression.words),
                })
            }
        }
    }

    fn charge(&mut self, steps: u64) -> Result<(), ExpressionFault> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err(ExpressionFault::Budget)
            }
        }
    }

    fn walk(&mut self, path: &Path) -> Result<Option<Json>, ExpressionFault> {
        let Some(found) = path.walk(&self.inputs)? else { return Ok(None) };
        self.charge(value::json_weight(found))?;
        if value::size(found)? > MAX_RESULT {
            return Err(ExpressionFault::ResultTooLarge);
        }
        Ok(Some(found.clone()))
    }

    fn run(&mut self, tree: &IdedExpr) -> Result<Option<Json>, Ended> {
        let scope = match &mut self.scope {
            Some(scope) => scope,
            empty => empty.insert(scope(self.inputs).map_err(Ended::Fault)?),
        };
        let steps = &mut self.steps;
        // The library is not ours: a panic of its is a mapping that cannot be evaluated, not a lost connection.
        let ended = catch_unwind(AssertUnwindSafe(|| meter::run(tree, scope, steps)));
        ended
            .map_err(|_| Ended::Fault(ExpressionFault::Evaluation))?
            .map_err(Ended::Failure)?
            .map_err(Ended::Fault)
    }
}

enum Ended {
    Fault(ExpressionFault),
    Failure(Failure),
}

fn scope(inputs: Inputs<'_>) -> Result<Context<'_, '_>, ExpressionFault> {
    let mut scope = Context::with_env(Arc::clone(&ENVIRONMENT));
    scope.add_variable_as_val("params", value::input(inputs.params)?);
    scope.add_variable_as_val("token", value::input(inputs.token)?);
    Ok(scope)
}

/// What the library says, in our words: its own would repeat values.
fn plain(error: &ExecutionError, words: &BTreeSet<Box<str>>) -> ExpressionFault {
    match error {
        ExecutionError::NoSuchKey(key) if words.contains(key.as_str()) => {
            ExpressionFault::MissingKey(key.as_str().into())
        }
        ExecutionError::NoSuchKey(_) => ExpressionFault::MissingComputedKey,
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedIndex(..)
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::ValuesNotComparable(..) => ExpressionFault::Types,
        ExecutionError::DivisionByZero(_)
        | ExecutionError::RemainderByZero(_)
        | ExecutionError::Overflow(..)
        | ExecutionError::IndexOutOfBounds(_) => ExpressionFault::Range,
        _ => ExpressionFault::Evaluation,
    }
}
