//! The accounts and what a trade does to them, as values: no file, no clock, no wire. A trade either changes a
//! position and adds exactly one numbered transaction, or changes nothing and says why.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

/// The account that trades are executed in.
pub(super) const TRADING_ACCOUNT: &str = "brokerage-main";
/// The largest quantity one order may name.
pub(super) const MAX_QUANTITY: u32 = 1_000_000;
/// How many transactions an account keeps, so that the file and an answer stay small; numbers are never reused.
pub(super) const KEPT_TRANSACTIONS: usize = 1_000;

const MAX_SYMBOL_LENGTH: usize = 12;

/// A ticker symbol: one to twelve of `A-Z 0-9 . -`, beginning with a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Symbol(String);

impl TryFrom<String> for Symbol {
    type Error = Rejection;

    fn try_from(text: String) -> Result<Self, Rejection> {
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
        let continues =
            text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-'));
        if begins && continues && text.len() <= MAX_SYMBOL_LENGTH {
            Ok(Self(text))
        } else {
            Err(Rejection::Arguments)
        }
    }
}

/// A number of shares from one to [`MAX_QUANTITY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32")]
pub(super) struct Quantity(u32);

impl TryFrom<u32> for Quantity {
    type Error = Rejection;

    fn try_from(number: u32) -> Result<Self, Rejection> {
        if (1..=MAX_QUANTITY).contains(&number) { Ok(Self(number)) } else { Err(Rejection::Arguments) }
    }
}

/// Which way a trade goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    Buy,
    Sell,
}

/// What `execute_trade` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) symbol: Symbol,
    pub(super) side: Side,
    pub(super) quantity: Quantity,
}

/// An order that was executed. The sequence number counts across all accounts: an order executed twice leaves two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Transaction {
    pub(super) sequence: u64,
    /// Seconds since 1970.
    pub(super) at: u64,
    pub(super) symbol: Symbol,
    pub(super) side: Side,
    pub(super) quantity: Quantity,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    positions: BTreeMap<Symbol, u64>,
    transactions: VecDeque<Transaction>,
}

/// Every account, and the number of the last transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Book {
    last_sequence: u64,
    accounts: BTreeMap<String, Account>,
}

/// Why the vault did not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// The arguments are not what the tool's schema asks for.
    Arguments,
    UnknownAccount,
    /// The order sells more than the account holds.
    NotHeld,
    /// A number would no longer fit.
    Full,
}

impl std::fmt::Display for Rejection {
    // Says nothing of what is held: an agent that may trade was not thereby allowed to read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Arguments => "the arguments do not match the tool's input schema; nothing was done",
            Self::UnknownAccount => "there is no account of that name",
            Self::NotHeld => "the order sells more than the account holds; nothing was traded",
            Self::Full => "the account cannot take this order; nothing was traded",
        })
    }
}

/// One holding of one account, as an answer lists it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Position<'a> {
    pub(super) symbol: &'a Symbol,
    pub(super) quantity: u64,
}

/// What one account holds.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Holdings<'a> {
    pub(super) account: &'a str,
    pub(super) positions: Vec<Position<'a>>,
}

impl Book {
    /// What each account holds, by name.
    pub(super) fn holdings(&self) -> Vec<Holdings<'_>> {
        self.accounts
            .iter()
            .map(|(name, account)| Holdings {
                account: name,
                positions: account
                    .positions
                    .iter()
                    .map(|(symbol, quantity)| Position { symbol, quantity: *quantity })
                    .collect(),
            })
            .collect()
    }

    /// The transactions of one account, oldest first.
    pub(super) fn transactions(&self, account: &str) -> Result<&VecDeque<Transaction>, Rejection> {
        self.accounts.get(account).map(|account| &account.transactions).ok_or(Rejection::UnknownAccount)
    }

    /// Executes `order` in the trading account. On a rejection the book is as it was.
    pub(super) fn execute(&mut self, order: Order, at: u64) -> Result<Transaction, Rejection> {
        let account = self.accounts.get_mut(TRADING_ACCOUNT).ok_or(Rejection::UnknownAccount)?;
        let held = account.positions.get(&order.symbol).copied().unwrap_or(0);
        let amount = u64::from(order.quantity.0);
        let holding = match order.side {
            Side::Buy => held.checked_add(amount).ok_or(Rejection::Full)?,
            Side::Sell => held.checked_sub(amount).ok_or(Rejection::NotHeld)?,
        };
        let sequence = self.last_sequence.checked_add(1).ok_or(Rejection::Full)?;
        let Order { symbol, side, quantity } = order;
        if holding == 0 {
            account.positions.remove(&symbol);
        } else {
            account.positions.insert(symbol.clone(), holding);
        }
        let done = Transaction { sequence, at, symbol, side, quantity };
        account.transactions.push_back(done.clone());
        while account.transactions.len() > KEPT_TRANSACTIONS {
            account.transactions.pop_front();
        }
        self.last_sequence = sequence;
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
