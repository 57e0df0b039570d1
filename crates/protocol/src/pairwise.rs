//! Names of agents for policies: stable between one owner and one resource server, and meaningless to anybody else (D-7).
//!
//! An enforcement point never hears a connection's handle (FED-49). What it hears instead is this: the same for every grant
//! of one agent, another at every other resource server, and nothing the handle can be computed from.

use crate::b64;
use crate::id::{ClientId, Handle, OwnerName};
use aws_lc_rs::hmac;

/// What a name begins with, so that nobody takes it for a handle.
const PREFIX: &str = "pw:";

/// The name of an agent for one owner's policies at one resource server, under the authority's key for such names.
#[must_use]
pub fn name(key: &[u8; 32], owner: &OwnerName, resource_server: &ClientId, handle: &Handle) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in [owner.as_str(), resource_server.as_str(), handle.as_str()] {
        // With its length, so that no two sets of parts are one text.
        context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        context.update(part.as_bytes());
    }
    format!("{PREFIX}{}", b64::encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // FED-49, D-7
    #[test]
    fn a_name_is_stable_for_its_parts_and_tells_none_of_them() {
        let of = |key: u8, owner: &str, server: &str, handle: &str| {
            let (owner, server) = (owner.parse().unwrap(), server.parse().unwrap());
            name(&[key; 32], &owner, &server, &handle.parse().unwrap())
        };
        let handle = "jkt:f3zNtNnYfgmEKsQyyHtmruOfJFzBi1lyb_D_2J9CDPo";
        let one = of(1, "alice", "https://gw", handle);
        assert_eq!(one, of(1, "alice", "https://gw", handle));
        assert!(one.starts_with("pw:") && one.len() == 46 && !one.contains(&handle[4..]));
        for other in [
            of(2, "alice", "https://gw", handle),
            of(1, "bob", "https://gw", handle),
            of(1, "alice", "https://gw2", handle),
            of(1, "alice", "https://gw", "jkt:03zNtNnYfgmEKsQyyHtmruOfJFzBi1lyb_D_2J9CDPo"),
        ] {
            assert_ne!(other, one);
        }
    }
}
