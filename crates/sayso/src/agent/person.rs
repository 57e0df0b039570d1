//! The agent's user at a terminal: shown the terms whole, asked once, told how it goes.
//!
//! Without a terminal nobody is asked and nothing is agreed to unless --accept-terms said so beforehand (CORE-43:
//! the user is never asked to stand in for the owner).

use super::show;
use crate::owner::typed::USUAL;
use async_trait::async_trait;
use sayso_agent::{Ask, Consent, Decision, Narrower, News};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Who answers for the agent.
pub(super) struct Person {
    accepts: bool,
    /// Whether it was said already that the owner is awaited.
    waits: AtomicBool,
}

impl Person {
    pub(super) fn new(accepts: bool) -> Person {
        Person { accepts, waits: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Consent for Person {
    async fn agree(&self, ask: &Ask<'_>) -> Decision {
        eprintln!("{}", show::terms(ask));
        if self.accepts {
            eprintln!("agreeing, as --accept-terms says");
            return Decision::Agree(Narrower::default());
        }
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Decision::NotNow;
        }
        let answered = tokio::task::spawn_blocking(prompt).await;
        if answered.unwrap_or_default() { Decision::Agree(Narrower::default()) } else { Decision::Decline }
    }

    fn tell(&self, news: &News<'_>) {
        let line = match news {
            News::Challenged { authority } => {
                warn_of_owner_key(authority);
                format!(
                    "the resource wants its owner's say; {} speaks for her",
                    crate::terminal::plain(authority)
                )
            }
            News::Reusing => "using a grant from before".to_owned(),
            News::Agreed => "agreed and signed".to_owned(),
            News::Resuming { authority } => {
                format!("taking up the wait at {} again", crate::terminal::plain(authority))
            }
            News::Waiting { .. } if self.waits.swap(true, Ordering::Relaxed) => return,
            News::Waiting { .. } => {
                "waiting for the resource's owner to decide. She has been asked by her own \
                                     authority; she is not you, and cannot be reached from here."
                    .to_owned()
            }
            News::Doubted => "the credential is not accepted there; going on under the bare key".to_owned(),
            News::Granted => "granted; calling".to_owned(),
            News::Restarting => "the authority lost track of the request; asking again".to_owned(),
            _ => return,
        };
        eprintln!("{line}");
    }
}

fn prompt() -> bool {
    eprint!("Agree to these terms, in your name? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim(), "y" | "Y" | "yes")
}

/// Says so when this user could approve its own requests (D-25). Looked at are the data folders it is likely to have: that
/// of the environment, and `.sayso` here, above and at home. That nothing is found proves nothing.
pub(crate) fn warn_of_owner_key(authority: &str) {
    let here = std::env::current_dir().unwrap_or_default();
    let above = here.ancestors().map(|folder| folder.join(USUAL));
    let named = std::env::var_os("SAYSO_DATA").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(USUAL));
    let key = named.into_iter().chain(above).chain(home).find_map(|folder| owner_key(&folder, authority));
    if let Some(key) = key {
        eprintln!(
            "warning: this user can read the owner's key for that authority ({}), and so could approve its own requests",
            crate::terminal::plain(&key.display().to_string())
        );
    }
}

/// The owner's key that this data folder names for an authority, if this user can read it.
fn owner_key(folder: &Path, authority: &str) -> Option<PathBuf> {
    let ready = std::fs::read(folder.join("ready.json")).ok()?;
    let ready: serde_json::Value = serde_json::from_slice(&ready).ok()?;
    let text = |name: &str| ready.get(name)?.as_str();
    let key = PathBuf::from(text("owner_key").filter(|_| text("authority") == Some(authority))?);
    std::fs::File::open(&key).is_ok().then_some(key)
}
