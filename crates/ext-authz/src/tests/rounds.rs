//! Further rounds of a call that was approved once: what the server asked is not seen here, so no round is offered (D-11).

use super::cast::{DOORS, House, Request, TRADE};

fn round(tool: &str, arguments: &str) -> Request {
    let call = Request::call(tool, arguments);
    let body = String::from_utf8(call.body.clone()).unwrap();
    let members = r#""requestState":"one","inputResponses":{},"name""#;
    Request { body: body.replace(r#""name""#, members).into_bytes(), ..call }
}

// D-11, D-15
#[tokio::test]
async fn a_round_is_refused_though_she_allows_rounds() {
    for door in DOORS {
        let house = House::open();
        let call = || round("execute_trade", TRADE).signed("trade-asks-1");
        assert_eq!(house.ask(door, &call()).await.error(), (403, "continuation_refused".into()), "{door:?}");
        assert_eq!(house.spent(), 0, "{door:?}: nothing is spent for it");
        let first = Request::call("execute_trade", TRADE).signed("trade-asks-1");
        assert_eq!(house.ask(door, &first).await.status, 200);
        assert_eq!(house.ask(door, &call()).await.error(), (403, "continuation_refused".into()), "{door:?}");
        let unsigned = round("execute_trade", TRADE);
        assert_eq!(house.ask(door, &unsigned).await.error(), (403, "continuation_refused".into()));
        assert_eq!((house.spent(), house.tickets()), (1, 0));
        let reader = round("get_positions", "{}").signed("reader");
        assert_eq!(house.ask(door, &reader).await.status, 200, "under a grant for many calls it is a call");
    }
}
