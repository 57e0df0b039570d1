//! COAZ for MCP: any message of an MCP client as a request to an OpenID AuthZEN policy engine.
//!
//! Three steps: *select* the mapping that governs a message (the one its tool declares, else the default of its
//! method, else nobody may say yes), *resolve* it over the message's parameters and the token's claims, and *judge*
//! what the policy engine answers. Everything here is a function of its arguments: it sends nothing, waits for
//! nothing and reads no clock. It knows nothing of UMA.
//!
//! ```
//! use sayso_coaz::{Engine, Operation, Projection, Registry, Settings};
//! use sayso_protocol::json::{Json, Limits};
//!
//! let json = |text: &str| Json::parse(text.as_bytes(), Limits::default()).unwrap();
//! let params = json(r#"{"name":"get_weather","arguments":{"zip":"10115"}}"#);
//! let token = json(r#"{"sub":"u-ann","client_id":"agent-7","aud":"https://mcp.test/mcp"}"#);
//! let engine = Engine::new(Settings::default()).unwrap();
//! let operation = Operation { method: "tools/call", params: Some(&params), is_request: true };
//! let Ok(Projection::Ask(asked)) = engine.project(operation, &Registry::undeclared(), 0, &token) else { panic!() };
//! assert_eq!(
//!     String::from_utf8(asked.request.body().unwrap()).unwrap(),
//!     r#"{"subject":{"type":"identity","id":"u-ann"},"action":{"name":"tools/call"},"resource":{"type":"tool","id":"get_weather"},"context":{"agent":"agent-7"}}"#
//! );
//! ```

pub mod answer;
pub mod authzen;
mod decision_point;
mod defaults;
mod expr;
mod fault;
pub mod lint;
mod mapping;
mod operation;
mod registry;
mod resolve;
mod settings;
mod template;

use sayso_protocol::Json;
use sayso_protocol::canon::S256;

pub use decision_point::{Deciding, DecisionPoint, Tally};
pub use defaults::{DefaultShape, EXTRA_DEFAULTS, IDENTITY, default_shapes, passes};
pub use expr::{BUDGET, Expression, ExpressionFault, MAX_DEPTH, MAX_NODES, MAX_RESULT, MAX_SOURCE};
pub use fault::{Category, Fault, Why};
pub use mapping::{MAX_ENTRIES, MAX_MAPPING, MEMBER, Mapping};
pub use operation::{NotASample, Operation, Sample};
pub use registry::{Change, MAX_DECLARED, MAX_PAGES, MAX_TOOLS, NotAListing, Registry, lifetime};
pub use resolve::{Notice, Warning};
pub use settings::{Revision, Settings, Trust};

use authzen::Request;
use defaults::Defaults;
use expr::Inputs;

/// Bytes the inputs of a declared mapping may have together.
pub const MAX_INPUTS: usize = 64 << 10;

/// Which mapping governs a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The default of its method.
    Default,
    /// The one its tool declares.
    Declared,
}

/// What is to be done with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Projection {
    /// Let it through, nobody is asked.
    PassThrough,
    /// Ask, and let it through only if every decision is yes.
    Ask(Box<Asked>),
}

/// A request to the policy engine, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which mapping it was.
    pub source: Source,
    /// Its digest, of a declared one.
    pub mapping: Option<S256>,
    /// The request.
    pub request: Request,
    /// What somebody should know.
    pub warnings: Vec<Warning>,
    /// Steps its expressions took, of [`BUDGET`].
    pub steps: u64,
}

impl Asked {
    /// Whether every decision's context says which agent acts, as the binding wants it for autonomous agents.
    #[must_use]
    pub fn names_agent(&self) -> bool {
        let names = |context: &Option<authzen::Object>| {
            context.as_ref().is_some_and(|context| context.json().get("agent").is_some())
        };
        match &self.request {
            Request::Evaluation(one) => names(&one.context),
            Request::Evaluations(several) => several.evaluations.iter().all(|entry| {
                let context =
                    if entry.context.is_some() { &entry.context } else { &several.defaults.context };
                names(context)
            }),
        }
    }
}

/// The mappings of one server, ready to be applied.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    defaults: Defaults,
}

impl Engine {
    /// Compiles every default mapping, so that one that cannot run is found at the start.
    ///
    /// # Errors
    /// When `extra_defaults` names a method it may not, or a default does not compile.
    pub fn new(settings: Settings) -> Result<Engine, Fault> {
        let compile = || Defaults::compile(settings.revision, &settings.extra_defaults);
        let defaults = expr::roomy(compile).unwrap_or_else(|| Err(Why::Compiling.at("")))?;
        Ok(Engine { settings, defaults })
    }

    /// The claim of a token that names its subject: `sub`, or another that is designated for its issuer (binding 3.1).
    #[must_use]
    pub fn subject_claim(&self, token: &Json) -> &str {
        self.settings.claim(token)
    }

    /// What is to be done with a message whose token was validated. `now` is in milliseconds, on the clock of the
    /// registry's freshness.
    ///
    /// # Errors
    /// When it may not pass, whatever a policy engine would say.
    pub fn project(
        &self,
        operation: Operation<'_>,
        registry: &Registry,
        now: i64,
        token: &Json,
    ) -> Result<Projection, Fault> {
        if passes(&operation) {
            return Ok(Projection::PassThrough);
        }
        if !operation.is_request {
            return Err(Why::Unmapped.at(""));
        }
        let declared = operation.tool().map(|tool| registry.declared(tool, now)).transpose()?.flatten();
        let (source, mapping) = match (declared, self.defaults.of(operation.method)) {
            (Some(mapping), _) => (Source::Declared, mapping),
            (None, Some(mapping)) => (Source::Default, mapping),
            (None, None) => return Err(Why::Unmapped.at("")),
        };
        let inputs = Inputs { params: operation.params(), token };
        if source == Source::Declared {
            bounded(inputs)?;
        }
        let resolved = resolve::resolve(mapping, inputs, &self.settings, BUDGET)?;
        let resolve::Resolved { request, warnings, steps } = resolved;
        let mapping = if source == Source::Declared { mapping.digest().cloned() } else { None };
        Ok(Projection::Ask(Box::new(Asked { source, mapping, request, warnings, steps })))
    }
}

/// What a stranger's expressions may run over: so much, and only numbers that keep their value (D-4, D-35).
fn bounded(inputs: Inputs<'_>) -> Result<(), Fault> {
    let size = |json| expr::writable(json).map_err(|_| Why::Number.at(""));
    if size(inputs.params)? + size(inputs.token)? > MAX_INPUTS {
        return Err(Why::InputsTooLarge.at(""));
    }
    Ok(())
}
