//! A value of a mapping: constants as they are, texts that begin with `$` as expressions, `$$` for a text that begins
//! with `$`, at any depth of lists and objects. Names of members are never looked at, and neither is anything that
//! an expression yields.

use sayso_protocol::Json;

use crate::expr::{Evaluator, Expression, MAX_SOURCE};
use crate::fault::{Fault, Why};

/// Expressions of one mapping.
const MAX_EXPRESSIONS: usize = 256;
/// Bytes of all expressions of one mapping together, which is what compiling it costs.
const MAX_SOURCES: usize = 16 << 10;
/// Nesting of one mapping.
const MAX_DEPTH: usize = 32;

/// A text as it is written in a mapping.
pub(crate) enum Leaf<'a> {
    /// Itself.
    Literal(&'a str),
    /// The source of an expression.
    Expression(&'a str),
}

/// Tells constants from expressions.
pub(crate) fn leaf(text: &str) -> Leaf<'_> {
    match text.strip_prefix('$') {
        Some(rest) if rest.starts_with('$') => Leaf::Literal(rest),
        Some(source) => Leaf::Expression(source),
        None => Leaf::Literal(text),
    }
}

/// Any value of a mapping.
#[derive(Debug)]
pub(crate) enum Template {
    /// Without an expression anywhere inside.
    Literal(Json),
    Expression(Expression),
    List(Vec<Template>),
    Map(Vec<(String, Template)>),
}

/// A value of a mapping that becomes a text.
#[derive(Debug)]
pub(crate) enum Text {
    Literal(String),
    Expression(Expression),
}

/// Reads the values of one mapping, within the bounds of the whole.
#[derive(Default)]
pub(crate) struct Reader {
    expressions: usize,
    sources: usize,
}

impl Reader {
    pub(crate) fn expression(&mut self, source: &str) -> Result<Expression, Fault> {
        self.expressions += 1;
        self.sources += source.len().min(MAX_SOURCE);
        if self.expressions > MAX_EXPRESSIONS || self.sources > MAX_SOURCES {
            return Err(Why::TooLarge.at(""));
        }
        Expression::compile(source).map_err(|fault| Fault::expression("", source, fault))
    }

    pub(crate) fn template(&mut self, value: &Json, depth: usize) -> Result<Template, Fault> {
        if depth > MAX_DEPTH {
            return Err(Why::TooLarge.at(""));
        }
        Ok(match value {
            Json::String(text) => match leaf(text) {
                Leaf::Literal(text) => Template::Literal(Json::String(text.to_owned())),
                Leaf::Expression(source) => Template::Expression(self.expression(source)?),
            },
            Json::Array(elements) => {
                let read = |(at, element)| {
                    self.template(element, depth + 1).map_err(|f| f.inside(&format!("[{at}]")))
                };
                list(elements.iter().enumerate().map(read).collect::<Result<_, Fault>>()?)
            }
            Json::Object(members) => {
                let read = |(name, value): &(String, Json)| {
                    let value = self.template(value, depth + 1).map_err(|fault| fault.inside(name))?;
                    Ok((name.clone(), value))
                };
                map(members.iter().map(read).collect::<Result<_, Fault>>()?)
            }
            constant => {
                crate::expr::writable(constant).map_err(|_| Why::Number.at(""))?;
                Template::Literal(constant.clone())
            }
        })
    }

    pub(crate) fn text(&mut self, value: &Json) -> Result<Text, Fault> {
        match value {
            Json::String(text) => match leaf(text) {
                Leaf::Literal("") => Err(Why::Empty.at("")),
                Leaf::Literal(text) => Ok(Text::Literal(text.to_owned())),
                Leaf::Expression(source) => self.expression(source).map(Text::Expression),
            },
            Json::Null => Err(Why::NoValue.at("")),
            _ => Err(Why::NotAString.at("")),
        }
    }
}

fn list(elements: Vec<Template>) -> Template {
    let constant =
        |element: &Template| if let Template::Literal(json) = element { Some(json.clone()) } else { None };
    match elements.iter().map(constant).collect() {
        Some(constants) => Template::Literal(Json::Array(constants)),
        None => Template::List(elements),
    }
}

fn map(members: Vec<(String, Template)>) -> Template {
    let constant = |(name, value): &(String, Template)| {
        if let Template::Literal(json) = value { Some((name.clone(), json.clone())) } else { None }
    };
    match members.iter().map(constant).collect() {
        Some(constants) => Template::Literal(Json::Object(constants)),
        None => Template::Map(members),
    }
}

/// The value of an expression, its faults with the expression's text.
pub(crate) fn evaluate(
    expression: &Expression,
    evaluator: &mut Evaluator<'_>,
) -> Result<Option<Json>, Fault> {
    evaluator.evaluate(expression).map_err(|fault| Fault::expression("", expression.source(), fault))
}

impl Template {
    /// The value for one message; nothing where an expression yields nothing.
    pub(crate) fn resolve(&self, evaluator: &mut Evaluator<'_>) -> Result<Option<Json>, Fault> {
        match self {
            Template::Literal(json) => Ok(Some(json.clone())),
            Template::Expression(expression) => evaluate(expression, evaluator),
            Template::List(elements) => {
                let mut values = Vec::with_capacity(elements.len());
                for (at, element) in elements.iter().enumerate() {
                    let value = element.resolve(evaluator).and_then(|value| {
                        // An element is not a member that can be left out: the others would move up.
                        value.ok_or_else(|| Why::AbsentElement.at(""))
                    });
                    values.push(value.map_err(|fault| fault.inside(&format!("[{at}]")))?);
                }
                Ok(Some(Json::Array(values)))
            }
            Template::Map(members) => {
                let mut values = Vec::with_capacity(members.len());
                for (name, value) in members {
                    if let Some(value) = value.resolve(evaluator).map_err(|fault| fault.inside(name))? {
                        values.push((name.clone(), value));
                    }
                }
                Ok(Some(Json::Object(values)))
            }
        }
    }

    /// Every expression inside, with its place below `place`.
    pub(crate) fn expressions<'a>(&'a self, place: &str, found: &mut Vec<(String, &'a Expression)>) {
        match self {
            Template::Literal(_) => {}
            Template::Expression(expression) => found.push((place.to_owned(), expression)),
            Template::List(elements) => {
                elements
                    .iter()
                    .enumerate()
                    .for_each(|(at, it)| it.expressions(&format!("{place}[{at}]"), found));
            }
            Template::Map(members) => {
                members.iter().for_each(|(name, it)| it.expressions(&format!("{place}.{name}"), found));
            }
        }
    }
}

impl Text {
    /// The text for one message, never empty.
    pub(crate) fn resolve(&self, evaluator: &mut Evaluator<'_>) -> Result<String, Fault> {
        match self {
            Text::Literal(text) => Ok(text.clone()),
            Text::Expression(expression) => text_of(evaluate(expression, evaluator)?),
        }
    }

    pub(crate) fn expression(&self) -> Option<&Expression> {
        if let Text::Expression(expression) = self { Some(expression) } else { None }
    }
}

/// A value where a name stands: there, a string, and not empty.
pub(crate) fn text_of(value: Option<Json>) -> Result<String, Fault> {
    match value {
        None | Some(Json::Null) => Err(Why::NoValue.at("")),
        Some(Json::String(text)) if text.is_empty() => Err(Why::Empty.at("")),
        Some(Json::String(text)) => Ok(text),
        Some(_) => Err(Why::NotAString.at("")),
    }
}
