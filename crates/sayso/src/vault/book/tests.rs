//! The book: what a trade changes, and that a rejected one changes nothing.

use serde_json::{from_value, json};

use super::*;

fn book() -> Book {
    from_value(json!({
        "last_sequence": 1,
        "accounts": {
            "brokerage-main": {
                "positions": { "VTI": 10 },
                "transactions": [{ "sequence": 1, "at": 5, "symbol": "VTI", "side": "buy", "quantity": 10 }]
            },
            "retirement-ira": { "positions": { "VTI": 7 }, "transactions": [] }
        }
    }))
    .unwrap()
}

fn order(symbol: &str, side: &str, quantity: u32) -> Order {
    from_value(json!({ "symbol": symbol, "side": side, "quantity": quantity })).unwrap()
}

fn held(book: &Book, account: &str, symbol: &str) -> Option<u64> {
    let symbol = Symbol::try_from(symbol.to_owned()).unwrap();
    book.accounts[account].positions.get(&symbol).copied()
}

#[test]
fn a_trade_moves_the_trading_account_and_no_other() {
    let mut book = book();
    let trade = book.execute(order("VTI", "buy", 3), 9).unwrap();
    assert_eq!((trade.sequence, trade.at, trade.side), (2, 9, Side::Buy));
    assert_eq!(held(&book, "brokerage-main", "VTI"), Some(13));
    assert_eq!(held(&book, "retirement-ira", "VTI"), Some(7));
    assert_eq!(book.transactions("brokerage-main").unwrap().back(), Some(&trade));
    assert!(book.transactions("retirement-ira").unwrap().is_empty());
}

#[test]
fn the_same_order_twice_shows_as_two_numbers_and_a_doubled_position() {
    let mut book = book();
    let first = book.execute(order("BND", "buy", 5), 9).unwrap();
    let second = book.execute(order("BND", "buy", 5), 9).unwrap();
    assert_eq!((first.sequence, second.sequence), (2, 3));
    assert_eq!(held(&book, "brokerage-main", "BND"), Some(10));
}

#[test]
fn selling_everything_leaves_no_empty_position() {
    let mut book = book();
    book.execute(order("VTI", "sell", 10), 9).unwrap();
    assert_eq!(held(&book, "brokerage-main", "VTI"), None);
    assert_eq!(book.holdings()[0].positions, vec![]);
}

#[test]
fn selling_more_than_is_held_changes_nothing() {
    let mut changed = book();
    assert_eq!(changed.execute(order("VTI", "sell", 11), 9), Err(Rejection::NotHeld));
    assert_eq!(changed.execute(order("AAPL", "sell", 1), 9), Err(Rejection::NotHeld));
    assert_eq!(changed, book());
}

#[test]
fn numbers_that_no_longer_fit_change_nothing() {
    let mut changed = book();
    changed.last_sequence = u64::MAX;
    let before = changed.clone();
    assert_eq!(changed.execute(order("VTI", "buy", 1), 9), Err(Rejection::Full));
    assert_eq!(changed, before);
    let mut changed = book();
    let vti = Symbol::try_from("VTI".to_owned()).unwrap();
    changed.accounts.get_mut(TRADING_ACCOUNT).unwrap().positions.insert(vti, u64::MAX);
    let before = changed.clone();
    assert_eq!(changed.execute(order("VTI", "buy", 1), 9), Err(Rejection::Full));
    assert_eq!(changed, before);
}

#[test]
fn an_account_keeps_its_newest_transactions_and_numbers_go_on() {
    let mut book = book();
    for _ in 0..KEPT_TRANSACTIONS {
        book.execute(order("VTI", "buy", 1), 9).unwrap();
    }
    let kept = book.transactions(TRADING_ACCOUNT).unwrap();
    assert_eq!(kept.len(), KEPT_TRANSACTIONS);
    assert_eq!(kept.front().unwrap().sequence, 2);
    assert_eq!(book.last_sequence, 1 + KEPT_TRANSACTIONS as u64);
}

#[test]
fn an_unknown_account_is_rejected() {
    assert_eq!(book().transactions("savings"), Err(Rejection::UnknownAccount));
}

#[test]
fn orders_that_are_not_orders_do_not_parse() {
    for bad in [
        json!({ "symbol": "VTI", "side": "buy", "quantity": 0 }),
        json!({ "symbol": "VTI", "side": "buy", "quantity": -1 }),
        json!({ "symbol": "VTI", "side": "buy", "quantity": 1.5 }),
        json!({ "symbol": "VTI", "side": "buy", "quantity": "1" }),
        json!({ "symbol": "VTI", "side": "buy", "quantity": 1_000_001 }),
        json!({ "symbol": "VTI", "side": "buy", "quantity": 4_294_967_297_u64 }),
        json!({ "symbol": "VTI", "side": "hold", "quantity": 1 }),
        json!({ "symbol": "VTI", "side": "Buy", "quantity": 1 }),
        json!({ "symbol": "vti", "side": "buy", "quantity": 1 }),
        json!({ "symbol": "", "side": "buy", "quantity": 1 }),
        json!({ "symbol": "1VTI", "side": "buy", "quantity": 1 }),
        json!({ "symbol": "ABCDEFGHIJKLM", "side": "buy", "quantity": 1 }),
        json!({ "symbol": "VTI", "side": "buy", "quantity": 1, "account": "retirement-ira" }),
        json!({ "symbol": "VTI", "side": "buy" }),
    ] {
        assert!(from_value::<Order>(bad.clone()).is_err(), "{bad}");
    }
    assert!(from_value::<Order>(json!({ "symbol": "BRK.B", "side": "sell", "quantity": 1_000_000 })).is_ok());
}
