//! Her one page: what waits, what she has, who was let in, what was done.
//!
//! What strangers can make many is bounded: agents she let in are shown before strangers, and what does not fit is
//! counted and linked to, never dropped.

use super::Shared;
use super::act::SignedIn;
use super::agents::{self, Agent};
use super::card::Card;
use super::page::{Page, show};
use super::record::{self, Entry};
use super::servers::{self, Newcomer};
use super::things::{self, Governance, Server};
use crate::Authority;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use sayso_owner::negotiation::Ask;
use sayso_owner::store::{Unavailable, Waiting};
use sayso_owner::unit::Unit;

/// Requests of a lane that are shown whole.
const WHOLE: usize = 10;
/// Further ones that are linked to.
const LINKED: usize = 100;

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    base: Option<&'a str>,
    owner: &'a str,
    sign_out: String,
    waiting: usize,
    lanes: [Lane; 2],
    newcomers: Vec<Newcomer>,
    servers: Vec<Server>,
    agents: Vec<Agent>,
    all_agents: usize,
    record: Vec<Entry>,
}

/// Requests of one sort.
struct Lane {
    title: &'static str,
    cards: Vec<Card>,
    /// Families of those that are linked to.
    more: Vec<String>,
    /// How many are not even that.
    rest: usize,
}

/// The page.
pub(super) async fn page(State(authority): Shared, by: SignedIn) -> Result<Response, Page> {
    let owner = &by.session.owner;
    let store = &authority.store;
    let waiting = store.pending(owner, authority.now()).await?;
    let units = store.units(owner).await?;
    let connections = store.connections(owner).await?;
    let (registered, servers) = (store.resources(owner).await?, store.resource_servers(owner).await?);
    let newcomers = servers::waiting(&servers, &by);
    Ok(show(&Home {
        base: authority.portal.as_ref().map(|portal| portal.base.as_str()),
        owner: owner.as_str(),
        sign_out: by.token(&["sign out"]),
        waiting: waiting.len() + newcomers.len(),
        lanes: lanes(&waiting, &units, &by),
        newcomers,
        servers: things::by_server(&registered, &servers, &units, &by),
        all_agents: connections.len(),
        agents: agents::list(connections, &by),
        record: recent(&authority, &by).await?,
    }))
}

async fn recent(authority: &Authority, by: &SignedIn) -> Result<Vec<Entry>, Unavailable> {
    let owner = &by.session.owner;
    let after = authority.store.last_row(owner).await?.saturating_sub(record::SHOWN).max(0);
    let rows = authority.store.ledger(owner, None, after, record::SHOWN).await?;
    Ok(record::entries(&rows))
}

fn lanes(waiting: &[Waiting], units: &[Unit], by: &SignedIn) -> [Lane; 2] {
    let lane = |title, ask| {
        let mut of_lane = waiting.iter().filter(|waiting| waiting.ask == ask);
        let cards = of_lane.by_ref().take(WHOLE).map(|one| Card::of(one, units, by)).collect();
        let more = of_lane.by_ref().take(LINKED).map(|one| one.family.to_string()).collect();
        Lane { title, cards, more, rest: of_lane.count() }
    };
    [lane("Agents you let in", Ask::Operation), lane("Strangers", Ask::Connection)]
}
