//! Bodies of which something is missing, or may be: refused by that name, at every door, before anybody is asked.

use super::cast::{DOORS, Door, House, LIMIT, Request, TRADE};
use crate::Whole;
use bytes::Bytes;

const CUT: &str = "x-envoy-auth-partial-body";

async fn assert_cut(request: &Request, what: &str) {
    for door in DOORS {
        let house = House::open();
        let said = house.ask(door, request).await;
        assert_named(&said, &format!("{door:?}: {what}"));
        assert_eq!((house.asked(), house.tickets(), house.spent()), (0, 0, 0), "{what}");
    }
}

fn assert_named(said: &super::cast::Said, what: &str) {
    assert_eq!(said.error(), (413, "request_body_too_large".into()), "{what}: {said:?}");
    assert!(said.json()["error_description"].as_str().unwrap().contains("truncated"), "{what}");
    assert!(said.headers.get("www-authenticate").is_none(), "{what}");
}

// MCP-29, MCP-30, CORE-116, CORE-21, CORE-64
#[tokio::test]
async fn a_body_that_may_be_cut_is_refused_by_that_name() {
    let call = Request::call("execute_trade", TRADE);
    let list = Request::list();
    for flag in ["true", "false,true", "", "FALSE", "0"] {
        assert_cut(&call.clone().but(CUT, flag), flag).await;
        // What is there may well be a message of its own.
        assert_cut(&list.clone().but(CUT, flag), flag).await;
        assert_cut(&call.clone().but(CUT, flag).signed("trade-1"), flag).await;
    }
    // What is cut may be no message any more, may be one of another kind, or may be proven whole.
    let half = Request { body: call.body[..call.body.len() / 2].to_vec(), ..call.clone() };
    for request in [list, call.clone(), call.signed("trade-1"), half] {
        assert_cut(&request.clone().with(CUT, "false"), "twice").await;
        assert_cut(&request.clone().without(CUT).with("transfer-encoding", "chunked"), "chunks").await;
        let none = Request { body: vec![], ..request.clone() };
        assert_cut(&none.clone().without(CUT), "nothing passed on").await;
        assert_cut(&none.with("content-length", "9000"), "nothing passed on of a body").await;
        assert_cut(&request.clone().with("content-length", "9000"), "longer").await;
        assert_cut(&request.with("content-length", "9000").without(CUT), "longer, no flag").await;
    }
}

// MCP-29, CORE-116
#[tokio::test]
async fn a_clients_own_flag_is_not_believed() {
    let call = Request::call("execute_trade", TRADE).signed("trade-1");
    let cut = |request: Request| request.with("transfer-encoding", "chunked");
    for door in DOORS {
        let house = House::believing(Whole::ByLength);
        for request in [cut(call.clone()), cut(Request::list())] {
            assert_named(&house.ask(door, &request).await, &format!("{door:?}"));
        }
        assert_eq!((house.asked(), house.tickets(), house.spent()), (0, 0, 0));
        let length = |request: Request| {
            let length = request.body.len().to_string();
            request.with("content-length", length)
        };
        let listed = house.ask(door, &length(Request::list())).await;
        assert_eq!(listed.status, 200, "{door:?}: {listed:?}");
        assert_named(&house.ask(door, &length(Request::list()).but(CUT, "true")).await, "the gateway's");
    }
}

// CORE-21
#[tokio::test]
async fn a_body_at_the_ceiling_may_have_been_longer() {
    for (length, cut) in [(LIMIT - 1, false), (LIMIT, true), (LIMIT + 1, true), (3 * LIMIT, true)] {
        let mut request = Request::list();
        request.body.resize(length, b' ');
        for door in DOORS {
            let said = House::open().ask(door, &request).await;
            if cut {
                assert_named(&said, &format!("{door:?}: {length}"));
            } else {
                assert_eq!(said.status, 200, "{door:?}: {length}: {said:?}");
            }
        }
    }
}

// MCP-29
#[tokio::test]
async fn a_gateway_that_saw_more_than_it_passed_on_cut_it() {
    for door in [Door::Joined, Door::Lines] {
        let house = House::open();
        for size in [-1, 0, 17] {
            let mut message = Request::list().message(door);
            message.size = size;
            assert_eq!(house.ask_grpc(message).await.status, 200, "{size}");
        }
        for request in [Request::list(), Request::call("execute_trade", TRADE).signed("trade-1")] {
            let mut message = request.message(door);
            message.size = 9000;
            assert_named(&house.ask_grpc(message).await, "size");
        }
        assert_eq!((house.asked(), house.tickets(), house.spent()), (0, 0, 0));
    }
}

// CORE-64
#[tokio::test]
async fn bytes_go_before_text_and_must_not_differ_from_it() {
    let house = House::open();
    let mut both = Request::list().message(Door::Lines);
    both.body = both.raw_body.clone();
    assert_eq!(house.ask_grpc(both.clone()).await.status, 200);
    both.raw_body = Request::call("execute_trade", TRADE).body.into();
    assert_eq!(house.ask_grpc(both.clone()).await.error(), (400, "invalid_request".into()));
    both.body = Bytes::from_static(b"x");
    assert_eq!(house.ask_grpc(both).await.error(), (400, "invalid_request".into()));
    assert_eq!(house.asked(), 0);
}

// CORE-62, CORE-64
#[tokio::test]
async fn a_signed_call_whose_body_was_changed_on_the_way_proves_nothing() {
    for door in DOORS {
        let house = House::open();
        let mut request = Request::call("get_positions", "{}").signed("reader");
        request.body.push(b' ');
        assert_eq!(house.ask(door, &request).await.error(), (401, "invalid_token".into()), "{door:?}");
    }
}
