//! Every cell of the table, then each rule with what it must say, keep and leave alone.

use super::fixture::{INTERVAL, START, World, ending, kinds, reply, signed};
use super::{Beat, Step};
use crate::ledger::{Author, Kind};
use crate::negotiation::{Ask, Ending, PENDING_SECONDS, STEP_SECONDS, State};
use serde_json::json;

mod cells;
mod claim;
mod commit;
mod grant;
mod identity;
mod indifference;
mod proffer;
