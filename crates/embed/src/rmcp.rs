//! The guard for servers written with rmcp.
//!
//! [`over_http`] makes the HTTP service of a server, guarded: the layer outside decides, the guard inside lets pass what
//! the layer passed and nothing else. There is no way to have that guard without its layer. [`Guarded`] goes around a
//! server on any other transport: what is open passes, a call gets a ticket at most (D-15), so an agent there uses the
//! shim. Both announce the extension in `server/discover` and `initialize` (MCP-03).
//!
//! rmcp's HTTP service does not take a [`Guarded`], so nobody serves one by mistake where calls could have been allowed:
//!
//! ```compile_fail
//! # use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
//! # use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
//! # #[derive(Clone)] struct Notes;
//! # impl rmcp::ServerHandler for Notes {}
//! fn serve(site: sayso_embed::Site) {
//!     let guard = move || Ok(sayso_embed::rmcp::Guarded::new(&site, Notes));
//!     let sessions = std::sync::Arc::new(NeverSessionManager::default());
//!     StreamableHttpService::new(guard, sessions, StreamableHttpServerConfig::default());
//! }
//! ```

mod behind;
mod said;

pub use behind::{Behind, over_http};

use crate::site::Site;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, Service};
use sayso_protocol::method::{UmaClass, uma_class};
use std::borrow::Cow;

/// A server on a transport that carries no HTTP request: nothing protected is ever allowed.
pub struct Guarded<S> {
    site: Site,
    inner: S,
}

impl<S> Guarded<S> {
    /// Guards a server.
    pub fn new(site: &Site, inner: S) -> Self {
        Self { site: site.clone(), inner }
    }
}

impl<S: Service<RoleServer>> Service<RoleServer> for Guarded<S> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let site = &self.site.0;
        let method = request.method();
        if let Some(refused) = said::tokenless(site) {
            return Err(refused);
        }
        if site.engine.resource().opens(method) {
            let result = self.inner.handle_request(request, context).await?;
            return Ok(said::announced(site, result));
        }
        if uma_class(method) != UmaClass::Protected {
            return Err(said::not_served());
        }
        let tool = match &request {
            ClientRequest::CallToolRequest(call) => Some(&*call.params.name),
            _ => None,
        };
        Err(said::turned(site.codes, &site.engine.turn_away(tool).await))
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let method = notified(&notification);
        if method.is_some_and(|method| self.site.0.engine.resource().opens(method)) {
            return self.inner.handle_notification(notification, context).await;
        }
        // Nobody waits for an answer to it.
        Ok(())
    }

    fn get_info(&self) -> ServerConfig {
        said::configured(&self.site.0, self.inner.get_info())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.inner.supported_protocol_versions()
    }
}

/// Its method; none when a later rmcp knows it and this does not.
fn notified(notification: &ClientNotification) -> Option<&str> {
    match notification {
        ClientNotification::CancelledNotification(_) => Some("notifications/cancelled"),
        ClientNotification::ProgressNotification(_) => Some("notifications/progress"),
        ClientNotification::InitializedNotification(_) => Some("notifications/initialized"),
        ClientNotification::RootsListChangedNotification(_) => Some("notifications/roots/list_changed"),
        ClientNotification::CustomNotification(custom) => Some(&custom.method),
        _ => None,
    }
}
