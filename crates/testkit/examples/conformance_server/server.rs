//! The server as a whole: what it says it can do, and who answers which method. Each subject has a file with its tools
//! and what they do; a tool's name belongs to exactly one of them.

#![expect(deprecated, reason = "the older revisions have logging")]

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, RequestStateCodec, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{RoleServer, ServerHandler};

use crate::changes::Listeners;
use crate::{asking, changes, content, prompts, resources, rounds, schemas, tasks, telling};

/// How long what is listed may be kept, in milliseconds.
const FRESH: u64 = 60_000;
/// What states of several rounds are sealed with; there is nothing here to protect.
const KEY: &[u8] = b"a key of a fixture that guards nothing at all";

/// What a tool's call comes to.
pub(crate) type Answer = Result<CallToolResponse, ErrorData>;
/// Where a call stands.
pub(crate) type Context = RequestContext<RoleServer>;

/// The server; clones are the same one.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) sessions: Arc<LocalSessionManager>,
    pub(crate) listeners: Listeners,
    pub(crate) states: RequestStateCodec,
    tasks: TaskManager,
}

/// A result of one text.
pub(crate) fn text(said: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(said.into())]).into()
}

impl Fixture {
    pub(crate) fn new(sessions: Arc<LocalSessionManager>) -> Self {
        let states = RequestStateCodec::new_unchecked(KEY);
        Self { sessions, listeners: Listeners::default(), states, tasks: TaskManager::new() }
    }

    /// Every tool. The suite calls the first one without arguments to try headers on it.
    fn tools() -> Vec<Tool> {
        [
            content::tools(),
            telling::tools(),
            asking::tools(),
            rounds::tools(),
            changes::tools(),
            tasks::tools(),
            schemas::tools(),
        ]
        .concat()
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("conformance-fixture", env!("CARGO_PKG_VERSION")))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Self::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let listed = ListToolsResult { tools: Self::tools(), ..Default::default() };
        Ok(listed.with_ttl_ms(FRESH).with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(&self, call: CallToolRequestParams, context: Context) -> Answer {
        if let Some(answer) = content::call(&call).or_else(|| schemas::call(&call)) {
            return answer;
        }
        if let Some(answer) = rounds::call(&self.states, &call, &context) {
            return answer;
        }
        if let Some(answer) = telling::call(self, &call, &context).await {
            return answer;
        }
        if let Some(answer) = asking::call(&call, &context).await {
            return answer;
        }
        if let Some(answer) = tasks::call(&self.tasks, &call, &context).await {
            return answer;
        }
        match changes::call(&self.listeners, &call).await {
            Some(answer) => answer,
            None => Err(ErrorData::invalid_params(format!("there is no tool {}", call.name), None)),
        }
    }

    async fn get_task(&self, named: GetTaskParams, _: Context) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&named.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, answered: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.update_task(&answered.task_id, answered.input_responses)
    }

    async fn cancel_task(&self, named: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&named.task_id)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let listed = ListPromptsResult { prompts: prompts::all(), ..Default::default() };
        Ok(listed.with_ttl_ms(FRESH).with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&asked)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = ListResourcesResult { resources: resources::all(), ..Default::default() };
        Ok(listed.with_ttl_ms(FRESH).with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let listed =
            ListResourceTemplatesResult { resource_templates: resources::templates(), ..Default::default() };
        Ok(listed.with_ttl_ms(FRESH).with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = resources::read(&asked.uri)?;
        Ok(read.with_ttl_ms(FRESH).with_cache_scope(CacheScope::Public).into())
    }

    async fn complete(&self, asked: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let known = ["paris", "park", "party"].into_iter();
        let fitting = known.filter(|word| word.starts_with(&asked.argument.value)).map(str::to_owned);
        let info = CompletionInfo::new(fitting.collect());
        Ok(CompleteResult::new(info.map_err(|fault| ErrorData::internal_error(fault, None))?))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listeners.listen(context).await;
        Ok(())
    }
}
