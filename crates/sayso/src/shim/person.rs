//! The person a client works for, as far as the client can ask: shown the terms whole, told how it goes.
//!
//! A client of the newest revision is asked between two rounds, an older one while its call is open; one that cannot be
//! asked at all agrees to nothing. Nobody here is ever asked to stand in for the owner (CORE-43).

use super::desk::Event;
use super::questions::Questions;
use super::round::{Question, Said};
use super::words;
use crate::agent::{person::warn_of_owner_key, show};
use async_trait::async_trait;
use sayso_agent::{Ask, Consent, Decision, Narrower, News, Stop};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// How long a person may take to answer about terms, within the life of their ticket.
const READING: Duration = Duration::from_secs(230);

/// Terms that were put to somebody.
#[derive(Clone)]
pub(super) struct Put {
    pub(super) question: Question,
    pub(super) text: String,
}

/// How a person is asked.
pub(super) enum Manner<'a> {
    /// Between two rounds: what was said to what, last time. It is an answer once.
    Rounds(Mutex<Option<(Question, Said)>>),
    /// While the call is open.
    Open(&'a Questions),
    /// Not at all.
    None,
}

/// The person.
pub(super) struct Person<'a> {
    manner: Manner<'a>,
    out: &'a mpsc::Sender<Event>,
    stop: &'a Stop,
    progress: Option<Value>,
    ticks: AtomicU32,
    warned: AtomicBool,
    put: Mutex<Option<Put>>,
    granted: Notify,
}

impl<'a> Person<'a> {
    pub(super) fn new(
        manner: Manner<'a>,
        out: &'a mpsc::Sender<Event>,
        stop: &'a Stop,
        token: Option<&str>,
    ) -> Person<'a> {
        let progress = token.and_then(|token| serde_json::from_str(token).ok());
        let (ticks, warned, put) = (AtomicU32::new(0), AtomicBool::new(false), Mutex::default());
        Person { manner, out, stop, progress, ticks, warned, put, granted: Notify::new() }
    }

    /// Returns once a grant is at hand.
    pub(super) async fn is_granted(&self) {
        self.granted.notified().await;
    }

    /// The terms that are still to be answered.
    pub(super) fn put(&self) -> Option<Put> {
        self.put.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tick(&self) {
        let Some(token) = &self.progress else { return };
        // Far below one, since the tool's own progress under the same token has to be more.
        let progress = f64::from(self.ticks.fetch_add(1, Ordering::Relaxed).saturating_add(1)) / 1e6;
        let params = json!({
            "progressToken": token, "progress": progress, "message": words::WAITING, "_meta": words::meta(),
        });
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        // A client that is not listening misses a tick.
        let _ = self.out.try_send(Event::Note(note.to_string().into()));
    }
}

fn decided(said: Said) -> Decision {
    match said {
        Said::Yes => Decision::Agree(Narrower::default()),
        Said::No => Decision::Decline,
        Said::Nothing => Decision::NotNow,
    }
}

#[async_trait]
impl Consent for Person<'_> {
    async fn agree(&self, ask: &Ask<'_>) -> Decision {
        let Ok(question) = Question::about(ask) else { return Decision::NotNow };
        let put = Put { question, text: show::terms(ask) };
        match &self.manner {
            Manner::Rounds(answered) => {
                let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
                // What was said counts for the very terms it was said about, and is used up by them.
                if let Some((_, said)) = answered.take_if(|(question, _)| *question == put.question) {
                    return decided(said);
                }
            }
            Manner::Open(questions) => {
                let said = tokio::select! {
                    said = questions.ask(&put.question, &put.text, self.out) => said,
                    () = tokio::time::sleep(READING) => Said::Nothing,
                    () = self.stop.said() => return Decision::Later,
                };
                return decided(said);
            }
            Manner::None => {}
        }
        *self.put.lock().unwrap_or_else(PoisonError::into_inner) = Some(put);
        Decision::Later
    }

    fn tell(&self, news: &News<'_>) {
        match news {
            News::Challenged { authority } if !self.warned.swap(true, Ordering::Relaxed) => {
                warn_of_owner_key(authority);
            }
            News::Waiting { .. } => self.tick(),
            News::Granted | News::Reusing => self.granted.notify_one(),
            _ => {}
        }
    }
}
