//! The guard behind the layer, over HTTP.
//!
//! A handler of rmcp's that hands on what is open, and what else the layer marked as let through. What it does not know
//! it does not hand on, so a method that a later rmcp adds is not served until it is added here. INVARIANT: only
//! [`over_http`] makes one, inside a layer.

use super::said;
use crate::layer::{Layered, SiteLayer};
use crate::passage::Decided;
use crate::site::Inner;
use futures::FutureExt;
use http::request::Parts;
use rmcp::ServerHandler;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::{
    SessionManager, StreamableHttpServerConfig, StreamableHttpService,
};
use sayso_protocol::payload::protection::AccessReport;
use sayso_protocol::payload::refusal::{Code, Forwarded, Refusal};
use std::borrow::Cow;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tower_layer::Layer;

/// The HTTP service of a server, guarded by this layer. Host and origin are checked by the layer, by the lists of its site;
/// what `config` says of them is not looked at.
pub fn over_http<H, M>(
    layer: &SiteLayer,
    server: impl Fn() -> Result<H, io::Error> + Send + Sync + 'static,
    sessions: Arc<M>,
    config: StreamableHttpServerConfig,
) -> Layered<StreamableHttpService<Behind<H>, M>>
where
    H: ServerHandler,
    M: SessionManager,
{
    let site = Arc::clone(&layer.site.0);
    let limit = site.engine.resource().settings().body_limit;
    let config = config.disable_allowed_hosts().disable_allowed_origins().with_max_request_body_bytes(limit);
    let guard = move || Ok(Behind { site: Arc::clone(&site), inner: server()? });
    layer.guarding().layer(StreamableHttpService::new(guard, sessions, config))
}

/// A server behind the layer.
pub struct Behind<H> {
    site: Arc<Inner>,
    inner: H,
}

type Context = RequestContext<RoleServer>;

impl<H: ServerHandler> Behind<H> {
    /// The call a grant was spent on, of a request that the layer let through; for the first who asks.
    fn passage(&self, context: &Context) -> Result<Option<AccessReport>, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let leave = parts.and_then(|parts| parts.extensions.get::<Decided>()).and_then(Decided::take);
        leave.map(|leave| leave.spent).ok_or_else(|| {
            let text = "nobody decided about this call; send it again";
            said::refused(self.site.codes, Refusal::new(Code::TemporarilyUnavailable, text))
        })
    }

    /// Runs a call that may pass. One that breaks off after a grant was spent on it is told to the agent and to her
    /// record (D-14).
    async fn run(
        &self,
        call: impl Future<Output = Result<CallToolResponse, ErrorData>>,
        spent: Option<AccessReport>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Ok(answered) = AssertUnwindSafe(call).catch_unwind().await {
            return answered;
        }
        let text = "the server broke off the call";
        let Some(call) = spent else {
            let refusal = Refusal::new(Code::UpstreamFailed, text);
            let refusal = Refusal { forwarded: Some(Forwarded::Unknown), ..refusal };
            return Err(said::refused(self.site.codes, refusal));
        };
        let family = call.family.clone();
        let summary = "whether the server ran the call is not known";
        if self.site.engine.report(call, summary).await.is_err() {
            tracing::error!(family = family.as_str(), "access.report_lost");
        }
        Err(said::refused(self.site.codes, Refusal::after_spend(text, Forwarded::Unknown)))
    }

    fn opens(&self, method: &str) -> bool {
        self.site.engine.resource().opens(method)
    }
}

/// Hands on what is open to everybody.
macro_rules! open {
    ($($name:ident($($request:ty)?) -> $result:ty;)*) => {$(
        async fn $name(&self, $(request: $request,)? context: Context) -> Result<$result, ErrorData> {
            self.inner.$name($(pass!(request, $request),)? context).await
        }
    )*};
}

/// Hands on what the layer let through.
macro_rules! decided {
    ($($name:ident($request:ty) -> $result:ty;)*) => {$(
        async fn $name(&self, request: $request, context: Context) -> Result<$result, ErrorData> {
            // rmcp would answer another number for −32002 here.
            self.passage(&context).map_err(|_| said::not_served())?;
            self.inner.$name(request, context).await
        }
    )*};
}

/// Hands on a notification.
macro_rules! told {
    ($($name:ident($request:ty);)*) => {$(
        async fn $name(&self, request: $request, context: NotificationContext<RoleServer>) {
            self.inner.$name(request, context).await;
        }
    )*};
}

macro_rules! pass {
    ($request:ident, $kind:ty) => {
        $request
    };
}

#[expect(deprecated, reason = "older clients still speak of what the newest revision has no more")]
impl<H: ServerHandler> ServerHandler for Behind<H> {
    open! {
        ping() -> ();
        set_level(SetLevelRequestParams) -> ();
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult;
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult;
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult;
        list_tools(Option<PaginatedRequestParams>) -> ListToolsResult;
    }

    decided! {
        complete(CompleteRequestParams) -> CompleteResult;
        get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        subscribe(SubscribeRequestParams) -> ();
        unsubscribe(UnsubscribeRequestParams) -> ();
        on_custom_request(CustomRequest) -> CustomResult;
        get_task(GetTaskParams) -> GetTaskResult;
        update_task(UpdateTaskParams) -> ();
        cancel_task(CancelTaskParams) -> ();
        list_skills(Option<PaginatedRequestParams>) -> ListSkillsResult;
        get_skill(GetSkillRequestParams) -> GetSkillResult;
        read_resource_directory(ReadResourceDirectoryRequestParams) -> ReadResourceDirectoryResult;
    }

    told! {
        on_cancelled(CancelledNotificationParam);
        on_progress(ProgressNotificationParam);
        on_custom_notification(CustomNotification);
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let spent = self.passage(&context)?;
        self.run(async { self.inner.call_tool(request, context).await }, spent).await
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.inner.initialize(request, context).await?;
        Ok(said::configured(&self.site, result))
    }

    async fn discover(&self, context: Context) -> Result<DiscoverResult, ErrorData> {
        let mut result = self.inner.discover(context).await?;
        said::announce(&self.site, &mut result.capabilities);
        Ok(result)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_roots_list_changed(context).await;
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut heard = requested.clone();
        let resource = self.site.engine.resource();
        let enforcement = &resource.settings().enforcement;
        if !enforcement.asks_nobody() {
            // Changed lists alone, as the layer trims it (ADR 0021).
            heard.resource_subscriptions = None;
        }
        // Where a policy is asked about every message, the layer has asked.
        let opened = enforcement.policed().is_some() || self.opens("subscriptions/listen");
        opened.then(|| self.inner.accepted_subscription_filter(&heard)).flatten()
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.inner.listen(context).await
    }

    fn get_info(&self) -> ServerConfig {
        said::configured(&self.site, self.inner.get_info())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.inner.get_tool(name)
    }

    fn negotiate_initialize(&self, request: &InitializeRequestParams) -> Result<InitializeResult, ErrorData> {
        self.inner.negotiate_initialize(request).map(|result| said::configured(&self.site, result))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.inner.supported_protocol_versions()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::cast::House;
    use crate::tests::guarded::Accounts;
    use rmcp::ServiceExt;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    /// The answers of a guard that has lost its layer.
    async fn alone(house: &House, accounts: &Accounts, messages: &[Value]) -> Vec<Value> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let guard = Behind { site: Arc::clone(&house.site.0), inner: accounts.clone() };
        tokio::spawn(async move {
            let running = guard.serve(tokio::io::split(theirs)).await.unwrap();
            let _ = running.waiting().await;
        });
        let (reader, mut writer) = tokio::io::split(ours);
        let mut lines = BufReader::new(reader).lines();
        let mut answers = Vec::new();
        for message in messages {
            writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            answers.push(serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap());
        }
        answers
    }

    fn asked(method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
    }

    // D-15: without the layer's mark nothing that is protected runs.
    #[tokio::test]
    async fn a_guard_without_its_layer_runs_nothing() {
        let (house, accounts) = (House::open(), Accounts::default());
        let messages = [
            asked("tools/list", json!({})),
            asked("tools/call", json!({ "name": "get_positions" })),
            asked("resources/read", json!({ "uri": "x" })),
            asked("vault/open", json!({})),
        ];
        let answers = alone(&house, &accounts, &messages).await;
        assert!(answers[0]["result"].is_object());
        for (refused, code, status) in
            [(&answers[1], -32002, 503), (&answers[2], -32601, 404), (&answers[3], -32601, 404)]
        {
            assert_eq!(refused["error"]["code"], code, "{refused}");
            assert_eq!(refused["error"]["data"]["status"], status, "{refused}");
        }
        assert_eq!(*accounts.did.lock().unwrap(), ["tools/list"]);
        house.assert_untouched("a guard alone");
    }

    // D-14: one leave, one call, however often a server handles the request.
    #[test]
    fn a_leave_is_taken_once() {
        let (one, other) = {
            let leave = Decided::new(None);
            (leave.clone(), leave)
        };
        assert!(one.is_good() && one.take().is_some());
        assert!(!other.is_good() && other.take().is_none());
    }
}
