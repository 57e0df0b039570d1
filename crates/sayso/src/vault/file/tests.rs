//! The book on disk: private, durable, one trade at a time, and never replaced when it cannot be read.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{from_value, json};
use tempfile::tempdir;

use super::*;

fn buy() -> Order {
    from_value(json!({ "symbol": "VTI", "side": "buy", "quantity": 1 })).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_vault_has_the_opening_book_in_a_private_file() {
    let dir = tempdir().unwrap();
    let inside = dir.path().join("a/b");
    let file = BookFile::open(&inside).unwrap();
    assert_eq!(file.read().unwrap(), serde_json::from_str::<Book>(OPENING_BOOK).unwrap());
    assert_eq!(mode(&inside), 0o700);
    assert_eq!(mode(&inside.join("vault.json")), 0o600);
    file.execute(buy(), 1).unwrap().unwrap();
    assert_eq!(mode(&inside.join("vault.json")), 0o600);
}

#[test]
fn a_trade_is_there_after_reopening() {
    let dir = tempdir().unwrap();
    let trade = BookFile::open(dir.path()).unwrap().execute(buy(), 1).unwrap().unwrap();
    let book = BookFile::open(dir.path()).unwrap().read().unwrap();
    assert_eq!(book.transactions("brokerage-main").unwrap().back(), Some(&trade));
}

#[test]
fn a_rejected_order_does_not_touch_the_file() {
    let dir = tempdir().unwrap();
    let file = BookFile::open(dir.path()).unwrap();
    let before = std::fs::read(&file.path).unwrap();
    let order = from_value(json!({ "symbol": "VTI", "side": "sell", "quantity": 1_000_000 })).unwrap();
    assert_eq!(file.execute(order, 1).unwrap(), Err(Rejection::NotHeld));
    assert_eq!(std::fs::read(&file.path).unwrap(), before);
}

#[test]
fn a_file_that_is_not_a_vault_stays_as_it_is() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("vault.json");
    std::fs::write(&path, b"{\"accounts\":").unwrap();
    assert!(BookFile::open(dir.path()).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"{\"accounts\":");
}

#[test]
fn what_a_crash_left_behind_is_not_read() {
    let dir = tempdir().unwrap();
    let file = BookFile::open(dir.path()).unwrap();
    std::fs::write(dir.path().join("vault.json.next"), b"half a bo").unwrap();
    assert!(BookFile::open(dir.path()).is_ok());
    file.execute(buy(), 1).unwrap().unwrap();
    assert!(!dir.path().join("vault.json.next").exists());
}

#[test]
fn trades_from_many_openers_at_once_lose_nothing() {
    let dir = tempdir().unwrap();
    BookFile::open(dir.path()).unwrap();
    let mut numbers: Vec<u64> = std::thread::scope(|scope| {
        let traders: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let file = BookFile::open(dir.path()).unwrap();
                    (0..5).map(|_| file.execute(buy(), 1).unwrap().unwrap().sequence).collect::<Vec<_>>()
                })
            })
            .collect();
        traders.into_iter().flat_map(|trader| trader.join().unwrap()).collect()
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (7..47).collect::<Vec<u64>>());
}
