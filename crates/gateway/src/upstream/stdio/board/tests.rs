//! Who is given a line, and who is told that none comes.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

const READER: Caller = Caller { cancels: true, streams: true };

fn board() -> (Arc<Board>, mpsc::Receiver<Bytes>, Arc<AtomicUsize>) {
    let (input, lines) = mpsc::channel(64);
    let changes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&changes);
    let board = Board::new(
        input,
        Arc::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
        }),
    );
    (board, lines, changes)
}

async fn call(board: &Arc<Board>, id: &str, token: &str) -> Exchange {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":{token}}}}}}}"#
    );
    board.reserve().await.unwrap().call(body.as_bytes(), READER).unwrap()
}

fn say(board: &Board, text: &str) {
    board.deliver(Line::Whole(text.as_bytes().to_vec()));
}

async fn sent(lines: &mut mpsc::Receiver<Bytes>) -> String {
    String::from_utf8(lines.recv().await.unwrap().to_vec()).unwrap()
}

// D-31
#[tokio::test]
async fn equal_ids_of_two_clients_are_two_calls() {
    let (board, mut lines, _) = board();
    let mut one = call(&board, "1", "\"t\"").await;
    let mut other = call(&board, "1", "\"t\"").await;
    assert!(sent(&mut lines).await.contains(r#""id":1,"#));
    assert!(sent(&mut lines).await.contains(r#""id":2,"#));
    say(&board, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2}}"#);
    say(&board, r#"{"jsonrpc":"2.0","id":2,"result":{"for":"other"}}"#);
    say(&board, r#"{"jsonrpc":"2.0","id":1,"result":{"for":"one"}}"#);
    assert_eq!(&(&mut one.answer).await.unwrap()[..], br#"{"jsonrpc":"2.0","id":1,"result":{"for":"one"}}"#);
    assert_eq!(
        &(&mut other.answer).await.unwrap()[..],
        br#"{"jsonrpc":"2.0","id":1,"result":{"for":"other"}}"#
    );
    assert!(one.notes.recv().await.is_none());
    let note = other.notes.recv().await.unwrap();
    assert!(String::from_utf8(note.to_vec()).unwrap().contains(r#""progressToken":"t""#));
}

// D-31
#[tokio::test]
async fn what_is_nobodys_is_dropped_and_a_changed_list_is_told() {
    let (board, mut lines, changes) = board();
    let mut exchange = call(&board, "\"a\"", "7").await;
    let _ = sent(&mut lines).await;
    for nobodys in [
        r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"a","result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
        "noise",
        "",
    ] {
        say(&board, nobodys);
    }
    assert!(exchange.notes.try_recv().is_err());
    assert!(exchange.answer.try_recv().is_err());
    for list in ["tools", "prompts", "resources"] {
        say(&board, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#));
    }
    assert_eq!(changes.load(Ordering::SeqCst), 3);
    say(&board, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(&(&mut exchange.answer).await.unwrap()[..], br#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
}

#[tokio::test]
async fn the_child_is_answered_for_a_client_that_can_do_nothing() {
    let (board, mut lines, _) = board();
    say(&board, r#"{"jsonrpc":"2.0","id":"p\u0031","method":"ping"}"#);
    assert_eq!(sent(&mut lines).await, "{\"jsonrpc\":\"2.0\",\"id\":\"p\\u0031\",\"result\":{}}\n");
    say(&board, r#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{}}"#);
    assert!(sent(&mut lines).await.contains("-32601"));
}

// D-14, D-31
#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_the_wait_for_it() {
    let (board, _lines, _) = board();
    let mut one = call(&board, "1", "1").await;
    let mut other = call(&board, "2", "2").await;
    say(&board, r#"{"jsonrpc":"2.0","id":1,"result":{"x":"\ud800"}}"#);
    assert!((&mut one.answer).await.is_err());
    board.deliver(Line::Long(Vec::new(), Some(2)));
    assert!((&mut other.answer).await.is_err());
}

// D-14, D-31
#[tokio::test]
async fn everybody_is_told_when_the_child_ends_and_nothing_more_is_sent() {
    let (board, mut lines, _) = board();
    let mut exchange = call(&board, "1", "1").await;
    let late = board.reserve().await.unwrap();
    board.close();
    assert!((&mut exchange.answer).await.is_err());
    assert!(late.call(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, READER).is_err());
    assert!(board.reserve().await.is_err());
    drop(exchange);
    let _ = sent(&mut lines).await;
    assert!(lines.recv().await.is_none(), "something was sent after the end");
}

#[tokio::test]
async fn hanging_up_cancels_where_it_does() {
    let (board, mut lines, _) = board();
    let body = br#"{"jsonrpc":"2.0","id":"z","method":"tools/list"}"#;
    for cancels in [true, false] {
        drop(board.reserve().await.unwrap().call(body, Caller { cancels, streams: false }).unwrap());
    }
    say(&board, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    board.close();
    assert!(sent(&mut lines).await.contains(r#""id":1,"#));
    let cancelled = sent(&mut lines).await;
    assert!(cancelled.contains("notifications/cancelled") && cancelled.contains(r#""requestId":1"#));
    assert!(sent(&mut lines).await.contains(r#""id":2,"#));
    assert!(lines.recv().await.is_none());
}

#[tokio::test]
async fn a_slow_caller_loses_notes_and_never_the_answer() {
    let (board, _lines, _) = board();
    let mut exchange = call(&board, "1", "1").await;
    for _ in 0..NOTES * 2 {
        say(&board, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#);
    }
    say(&board, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!((&mut exchange.answer).await.is_ok());
    let mut kept = 0;
    while exchange.notes.recv().await.is_some() {
        kept += 1;
    }
    assert_eq!(kept, NOTES);
}

#[tokio::test]
async fn there_is_a_limit_to_calls_under_way() {
    let (board, mut lines, _) = board();
    tokio::spawn(async move { while lines.recv().await.is_some() {} });
    let mut held = Vec::new();
    for _ in 0..CALLS {
        held.push(call(&board, "1", "1").await);
    }
    assert!(board.reserve().await.is_err());
    held.pop();
    assert!(board.reserve().await.is_ok());
}

// D-13, D-31
#[tokio::test]
async fn the_child_of_a_session_speaks_to_its_one_client() {
    let (input, mut lines) = mpsc::channel(64);
    let board = Board::of_session(input, Arc::new(|_| {}));
    let ask = r#"{"jsonrpc":"2.0","id":"q1","method":"roots/list"}"#;
    // Before anybody listens it is kept; what cannot be traced in an id of ours passes as it is.
    say(&board, ask);
    let mut listening = board.listen().unwrap();
    assert_eq!(listening.recv().await.unwrap(), ask.as_bytes());
    // On the stream of the only call under way.
    let mut one = call(&board, "1", "\"t\"").await;
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    say(&board, cancelled);
    assert_eq!(one.notes.recv().await.unwrap(), cancelled.as_bytes());
    assert_eq!(board.number_of("1"), Some(1));
    // Of two calls neither is meant more than the listening.
    let mut other = call(&board, "2", "\"u\"").await;
    say(&board, ask);
    assert_eq!(listening.recv().await.unwrap(), ask.as_bytes());
    drop(listening);
    say(&board, ask);
    assert_eq!(other.notes.recv().await.unwrap(), ask.as_bytes());
    assert!(one.notes.try_recv().is_err());
    board.close();
    assert!(board.listen().is_none());
    assert!(sent(&mut lines).await.contains("tools/call"));
}
