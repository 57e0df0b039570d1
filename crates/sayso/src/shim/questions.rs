//! Questions put to a client of an older revision while its call is open, and what it answers.
//!
//! Their ids are ours and drawn at random, so that no answer to the server's questions is taken for one of them, nor the
//! other way round.

use super::desk::Event;
use super::round::{ANSWER, Question, Said};
use super::words;
use sayso_protocol::json::Json;
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Most questions open at once.
const MOST: usize = 256;

/// Questions that are open.
#[derive(Default)]
pub(super) struct Questions(Mutex<HashMap<String, oneshot::Sender<Option<Json>>>>);

/// One of them. Dropped before it is answered, it is withdrawn.
struct Open<'a> {
    questions: &'a Questions,
    id: String,
    out: &'a mpsc::Sender<Event>,
}

impl Questions {
    /// Asks, and waits for the answer.
    pub(super) async fn ask(&self, question: &Question, message: &str, out: &mpsc::Sender<Event>) -> Said {
        let Ok(name) = crate::clock::name() else { return Said::Nothing };
        let id = format!("sayso-{name}");
        let (say, hear) = oneshot::channel();
        {
            let mut open = self.open();
            if open.len() >= MOST {
                return Said::Nothing;
            }
            open.insert(id.clone(), say);
        }
        let open = Open { questions: self, id, out };
        let request = json!({ "jsonrpc": "2.0", "id": open.id, "method": "elicitation/create", "params": {
            "message": message, "requestedSchema": question.schema(), "_meta": words::meta(),
        }});
        if out.send(Event::Note(request.to_string().into())).await.is_err() {
            return Said::Nothing;
        }
        match hear.await {
            Ok(Some(result)) => Said::of(&result, question.key()),
            _ => Said::Nothing,
        }
    }

    /// Takes an answer, if it is to one of these questions.
    pub(super) fn answer(&self, id: &str, body: &[u8]) -> bool {
        let id: String = serde_json::from_str(id).unwrap_or_default();
        let Some(asked) = self.open().remove(&id) else { return false };
        let root = Json::parse(body, ANSWER).ok();
        // Whoever asked may have gone.
        let _ = asked.send(root.and_then(|root| root.get("result").cloned()));
        true
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Option<Json>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.questions.open().remove(&self.id).is_some() {
            let params = json!({ "requestId": self.id, "reason": "no longer asked" });
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            // A client that cannot take it now finds out when it answers.
            let _ = self.out.try_send(Event::Note(note.to_string().into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn asked(out: &mut mpsc::Receiver<Event>) -> serde_json::Value {
        let Some(Event::Note(note)) = out.recv().await else { panic!("a note") };
        serde_json::from_slice(&note).unwrap()
    }

    #[tokio::test]
    async fn an_answer_finds_its_question_and_a_dropped_question_is_withdrawn() {
        let questions = Questions::default();
        let (out, mut heard) = mpsc::channel(8);
        let ask = questions.ask(&Question::Wait, "?", &out);
        let answer = async {
            let request = asked(&mut heard).await;
            let id = request["id"].to_string();
            assert!(!questions.answer("\"sayso-other\"", b"{}") && !questions.answer("7", b"{}"));
            let result = json!({"action": "accept", "content": {"keep_waiting": true}});
            let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            assert!(questions.answer(&id, body.to_string().as_bytes()));
            assert!(!questions.answer(&id, body.to_string().as_bytes()), "once");
        };
        assert_eq!(tokio::join!(ask, answer).0, Said::Yes);
        let late = questions.ask(&Question::Wait, "?", &out);
        assert!(tokio::time::timeout(Duration::from_millis(20), late).await.is_err());
        let request = asked(&mut heard).await;
        let withdrawn = asked(&mut heard).await;
        assert_eq!(withdrawn["method"], "notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], request["id"]);
        assert!(questions.open().is_empty());
    }

    #[tokio::test]
    async fn an_error_is_no_yes() {
        let questions = Questions::default();
        let (out, mut heard) = mpsc::channel(8);
        let answer = async {
            let id = asked(&mut heard).await["id"].to_string();
            questions.answer(&id, br#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#);
        };
        let ask = questions.ask(&Question::Wait, "?", &out);
        assert_eq!(tokio::join!(ask, answer).0, Said::Nothing);
    }
}
