//! Metering without a fork (D-35): the parsed tree is rewritten so that wherever the library copies a value or turns
//! a loop, it first calls one of our functions, which takes steps from a budget. Their names begin with `@`, which
//! no source can say. `tests/bombs` must pass with every upgrade of the library: a new place where it copies
//! would be a new hole.

use std::cell::RefCell;

use super::library::{
    CallExpr, CelBool, CelDouble, CelInt, CelString, ComprehensionExpr, Context, CowVal, DYN_TYPE, EntryExpr,
    Env, ExecutionError, Expr, IdedExpr, LiteralValue, Value, operators,
};
use super::syntax::{is_optional_namespace, straight_nodes};
use super::value::{self, Outcome};
use super::{ExpressionFault, pattern};

const COPY: &str = "@copy";
const KEY: &str = "@key";
const RANGE: &str = "@range";
const TICK: &str = "@tick";
const MATCHES: &str = "@matches";
const RESULT: &str = "@result";

/// What one evaluation has left, and what came of it. The library takes plain functions only, so they meet here.
struct Meter {
    steps: u64,
    spent: bool,
    result: Option<Outcome>,
}

thread_local! {
    static METER: RefCell<Meter> = const { RefCell::new(Meter { steps: 0, spent: false, result: None }) };
}

/// The standard library and the functions above.
pub(super) fn environment() -> Env {
    let mut env = Env::stdlib();
    // The names are our own, so none can be declared already; a missing one would fail every expression, not open it.
    let _ = env.add_overload(COPY, COPY, vec![DYN_TYPE], copy);
    let _ = env.add_overload(KEY, KEY, vec![DYN_TYPE], key);
    let _ = env.add_overload(RANGE, RANGE, vec![DYN_TYPE], range);
    let _ = env.add_overload(TICK, TICK, vec![DYN_TYPE], tick);
    let _ = env.add_overload(RESULT, RESULT, vec![DYN_TYPE], result);
    let _ = env.add_overload(MATCHES, MATCHES, vec![DYN_TYPE, DYN_TYPE], matches);
    env
}

/// Takes steps, unless there are too few left.
fn charge(steps: u64) -> Result<(), ExecutionError> {
    METER.with_borrow_mut(|meter| match meter.steps.checked_sub(steps) {
        Some(left) if !meter.spent => {
            meter.steps = left;
            Ok(())
        }
        _ => {
            (meter.steps, meter.spent) = (0, true);
            Err(ExecutionError::MissingArgumentOrTarget)
        }
    })
}

fn copy<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = arguments.into_iter().next().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    charge(value::weight(value.as_ref()))?;
    Ok(value)
}

/// A key that is looked up. The library hashes it and repeats it in its fault; and for a number that is no index it
/// copies the whole list into the fault, so such a number is refused here.
fn key<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let key = copy(arguments)?;
    match key.downcast_ref::<CelDouble>() {
        Some(double) if double.inner().fract() != 0.0 => {
            Err(ExecutionError::function_error("_[_]", "no such index"))
        }
        _ => Ok(key),
    }
}

/// What a loop goes through. The library goes through the keys of a map in an order of chance; the same message is to
/// become the same request.
fn range<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let range = copy(arguments)?;
    Ok(value::keys(range.as_ref()).map(CowVal::owned).unwrap_or(range))
}

fn tick<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let nodes =
        arguments.first().and_then(|nodes| nodes.downcast_ref::<CelInt>()).map(|nodes| *nodes.inner());
    charge(nodes.and_then(|nodes| u64::try_from(nodes).ok()).unwrap_or(u64::MAX))?;
    Ok(CowVal::owned(CelBool::from(true)))
}

fn result<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = arguments.first().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    charge(value::weight(value.as_ref()))?;
    let outcome = value::outcome(value.as_ref());
    METER.with_borrow_mut(|meter| meter.result = Some(outcome));
    Ok(CowVal::owned(CelBool::from(true)))
}

fn matches<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = |index: usize| arguments.get(index).and_then(|value| value.downcast_ref::<CelString>());
    let (Some(subject), Some(written)) = (text(0), text(1)) else {
        return Err(ExecutionError::function_error("matches", "no such overload"));
    };
    charge(pattern::cost(subject.inner(), written.inner()))?;
    let found = pattern::is_match(subject.inner(), written.inner());
    let found = found.ok_or_else(|| ExecutionError::function_error("matches", "pattern refused"))?;
    Ok(CowVal::owned(CelBool::from(found)))
}

/// Evaluates a rewritten tree with `steps` to spend; what is left comes back.
pub(super) fn run(program: &IdedExpr, scope: &Context<'_, '_>, steps: &mut u64) -> Result<Outcome, Failure> {
    METER.with_borrow_mut(|meter| *meter = Meter { steps: *steps, spent: false, result: None });
    let ended = Value::resolve(program, scope);
    let (left, spent, outcome) =
        METER.with_borrow_mut(|meter| (meter.steps, meter.spent, meter.result.take()));
    *steps = left;
    match (ended, outcome) {
        // Also where `||` or a loop swallowed the fault that says so.
        _ if spent => Err(Failure::Spent),
        (Err(error), _) => Err(Failure::Library(Box::new(error))),
        (Ok(_), Some(outcome)) => Ok(outcome),
        (Ok(_), None) => Err(Failure::Spent),
    }
}

/// Why an evaluation has no outcome.
pub(super) enum Failure {
    /// The budget is spent.
    Spent,
    /// The library says so.
    Library(Box<ExecutionError>),
}

/// The tree as it is evaluated, and the steps it costs before any loop turns.
pub(super) fn rewrite(root: IdedExpr) -> Result<(IdedExpr, u64), ExpressionFault> {
    let nodes = straight_nodes(&root);
    Ok((call(RESULT, vec![inside(root)?]), nodes))
}

fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

fn literal(value: LiteralValue) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(value) }
}

/// The expression, paid for when its value is about to be copied.
fn paid(expr: IdedExpr) -> Result<IdedExpr, ExpressionFault> {
    let free = match &expr.expr {
        Expr::Literal(LiteralValue::String(_) | LiteralValue::Bytes(_)) => false,
        Expr::Literal(_) => true,
        // The empty list a loop begins with: the library looks for it as it is.
        Expr::List(list) => list.elements.is_empty(),
        _ => false,
    };
    let expr = inside(expr)?;
    Ok(if free { expr } else { call(COPY, vec![expr]) })
}

fn inside(expr: IdedExpr) -> Result<IdedExpr, ExpressionFault> {
    let id = expr.id;
    let expr = match expr.expr {
        Expr::Call(call) => return calling(id, call),
        Expr::Select(mut select) => {
            // A name and its fields are looked up as one and hand out borrows; anything else is a value in passing.
            *select.operand = inside(*select.operand)?;
            Expr::Select(select)
        }
        Expr::List(mut list) => {
            list.elements = list.elements.into_iter().map(paid).collect::<Result<_, _>>()?;
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                let EntryExpr::MapEntry(entry) = &mut entry.expr else { return Err(ExpressionFault::Syntax) };
                entry.key = paid(std::mem::take(&mut entry.key))?;
                entry.value = paid(std::mem::take(&mut entry.value))?;
            }
            Expr::Map(map)
        }
        Expr::Comprehension(c) => Expr::Comprehension(Box::new(looping(*c)?)),
        leaf @ (Expr::Ident(_) | Expr::Literal(_)) => leaf,
        Expr::Struct(_) | Expr::Unspecified => return Err(ExpressionFault::Syntax),
    };
    Ok(IdedExpr { id, expr })
}

fn calling(id: u64, mut inner: CallExpr) -> Result<IdedExpr, ExpressionFault> {
    let name = inner.func_name.as_str();
    let passes_on = [
        operators::CONDITIONAL,
        operators::LOGICAL_AND,
        operators::LOGICAL_OR,
        operators::LOGICAL_NOT,
        operators::NOT_STRICTLY_FALSE,
        operators::INDEX,
    ];
    let optional = [operators::OPT_INDEX, operators::OPT_SELECT].contains(&name);
    let looks_up = [operators::INDEX, operators::OPT_INDEX].contains(&name);
    let argument = if passes_on.contains(&name) || optional { inside } else { paid };
    let mut args = Vec::with_capacity(inner.args.len());
    for (at, arg) in inner.args.into_iter().enumerate() {
        let is_key = looks_up && at == 1 && !matches!(arg.expr, Expr::Literal(LiteralValue::String(_)));
        args.push(if is_key { call(KEY, vec![inside(arg)?]) } else { argument(arg)? });
    }
    inner.args = args;
    if let Some(target) = inner.target.take() {
        // `optional.of` is one name; a target that is wrapped would no longer spell it.
        let target = if is_optional_namespace(&target) { *target } else { paid(*target)? };
        inner.target = Some(Box::new(target));
    }
    if inner.func_name == "matches" {
        inner.func_name = MATCHES.to_owned();
        inner.args.splice(0..0, inner.target.take().map(|target| *target));
    }
    let expr = IdedExpr { id, expr: Expr::Call(inner) };
    Ok(if optional { call(COPY, vec![expr]) } else { expr })
}

/// Puts a tick where a loop turns. Loops that only append keep the shape by which the library knows them, because
/// it copies the whole list at every turn of any other: their condition stays a constant and their result a name, and
/// the tick guards the step.
fn looping(mut c: ComprehensionExpr) -> Result<ComprehensionExpr, ExpressionFault> {
    let turn = 1 + straight_nodes(&c.loop_cond) + straight_nodes(&c.loop_step);
    let turn = i64::try_from(turn).map_err(|_| ExpressionFault::TooManyNodes)?;
    let tick = || call(TICK, vec![literal(LiteralValue::Int(turn.into()))]);
    let no = || literal(LiteralValue::Boolean(false.into()));
    let only_appends = appends(&c);
    let fixed = matches!(c.iter_range.expr, Expr::List(_));
    c.iter_range = if fixed { paid(c.iter_range)? } else { call(RANGE, vec![inside(c.iter_range)?]) };
    c.accu_init = paid(c.accu_init)?;
    let step = std::mem::take(&mut c.loop_step);
    if !only_appends {
        c.result = paid(c.result)?;
        // `&&` and `||` on the outside are how the library knows a loop whose faults a later turn may settle.
        c.loop_step = inside(step)?;
        let condition = inside(std::mem::take(&mut c.loop_cond))?;
        c.loop_cond = call(operators::CONDITIONAL, vec![tick(), condition, no()]);
        return Ok(c);
    }
    c.loop_step = match step.expr {
        Expr::Call(mut guarded) if guarded.func_name == operators::CONDITIONAL => {
            let otherwise = guarded.args.pop().unwrap_or_default();
            let step = guarded.args.pop().unwrap_or_default();
            let guard = guarded.args.pop().unwrap_or_default();
            let guard = call(operators::CONDITIONAL, vec![tick(), inside(guard)?, no()]);
            call(operators::CONDITIONAL, vec![guard, appended(step)?, otherwise])
        }
        sum => {
            let accu = IdedExpr { id: 0, expr: Expr::Ident(c.accu_var.clone()) };
            call(operators::CONDITIONAL, vec![tick(), appended(IdedExpr { id: 0, expr: sum })?, accu])
        }
    };
    Ok(c)
}

/// Whether the loop is one of the library's `map` and `filter`, which build their list in place.
fn appends(c: &ComprehensionExpr) -> bool {
    let is_accu = |expr: &IdedExpr| matches!(&expr.expr, Expr::Ident(name) if *name == c.accu_var);
    let is_sum = |expr: &IdedExpr| match &expr.expr {
        Expr::Call(sum) if sum.func_name == operators::ADD && sum.target.is_none() => {
            matches!(sum.args.as_slice(), [accu, IdedExpr { expr: Expr::List(_), .. }] if is_accu(accu))
        }
        _ => false,
    };
    let step = match &c.loop_step.expr {
        Expr::Call(guarded) if guarded.func_name == operators::CONDITIONAL && guarded.target.is_none() => {
            matches!(guarded.args.as_slice(), [_, step, otherwise] if is_sum(step) && is_accu(otherwise))
        }
        _ => is_sum(&c.loop_step),
    };
    step && is_accu(&c.result) && matches!(c.loop_cond.expr, Expr::Literal(_))
}

/// `@result + [x]`, its left side left as it is.
fn appended(step: IdedExpr) -> Result<IdedExpr, ExpressionFault> {
    let Expr::Call(mut sum) = step.expr else { return Err(ExpressionFault::Syntax) };
    let list = sum.args.pop().unwrap_or_default();
    sum.args.push(inside(list)?);
    Ok(IdedExpr { id: step.id, expr: Expr::Call(sum) })
}
