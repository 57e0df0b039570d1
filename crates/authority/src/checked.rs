//! What was checked about an agent, in a sentence an axis, as every surface of hers says it (POL-28, POL-52).
//!
//! "Somebody describes it" and "somebody publishes its key" are different sentences. Names in them are strangers' words:
//! whoever shows a sentence shows text.

use crate::words::is_quote;
use sayso_owner::evidence::{Evidence, Found, Operator};
use sayso_protocol::payload::client::client_address;

/// The sentences: its key, where it comes from, who runs it.
pub(crate) fn sentences(evidence: &Evidence) -> [String; 3] {
    let [binding, provenance] = match (&evidence.issuer, &evidence.subject) {
        (Some(issuer), Some(subject)) => named(issuer, subject, evidence),
        _ => [
            "Its key signed these terms, and the signature was checked. Whoever comes with that key is the same agent."
                .to_owned(),
            "It showed no credential that says where it comes from.".to_owned(),
        ],
    };
    [binding, provenance, evidence.operator.as_ref().map_or_else(nobody, operator)]
}

fn named(issuer: &str, subject: &str, evidence: &Evidence) -> [String; 2] {
    let (parent, subject) = (evidence.parent.as_ref(), unquoted(subject));
    let parent = parent.map_or_else(String::new, |parent| format!(", which belongs to {parent}"));
    [
        format!(
            "Its key signed these terms, and {issuer} says that the key is this agent's for now. Whoever comes with a \
             key that {issuer} says the same of is the same agent."
        ),
        format!(
            "{issuer} says that it is \u{201c}{subject}\u{201d}{parent}; that was checked, and who runs this authority believes {issuer} \
             about agents."
        ),
    ]
}

fn nobody() -> String {
    "Nobody vouches for who runs it.".into()
}

fn operator(operator: &Operator) -> String {
    let client = &operator.client_id;
    // Only an address is written out: any other text could read as a sentence of ours.
    if client_address(client).is_err() {
        return "It names something that is no address, so nobody vouches for who runs it.".into();
    }
    let called = operator.name.as_deref().map(unquoted);
    let called = called.map_or_else(String::new, |name| format!(" as \u{201c}{name}\u{201d}"));
    match operator.found {
        Found::Nothing => format!(
            "It says that it is described at {client}; nothing there describes it, so nobody vouches for who runs it."
        ),
        Found::Described => format!(
            "{client} describes such an agent{called}, which anybody may point at: it does not show that this one is it."
        ),
        Found::KeyPublished => format!(
            "{client} describes it{called}, and the same place publishes the very key it signed with."
        ),
    }
}

/// A name that cannot end the quotation it stands in: each run of marks that quote, or look as if they did, is one
/// apostrophe, since two of them look like the end of a quotation again.
fn unquoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        match is_quote(letter) {
            true if out.ends_with('\'') => {}
            true => out.push('\''),
            false => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operator: Option<(Found, Option<&str>)>, issuer: bool) -> [String; 3] {
        let operator = operator.map(|(found, name)| Operator {
            client_id: "https://op.example/a.json".into(),
            name: name.map(str::to_owned),
            found,
        });
        let issuer = issuer.then(|| "https://ps.example".to_owned());
        let subject = issuer.as_ref().map(|_| "aauth:worker@ps.example".to_owned());
        sentences(&Evidence { issuer, subject, operator, parent: None })
    }

    // POL-52
    #[test]
    fn being_named_and_having_ones_key_published_read_differently() {
        let all = [
            None,
            Some((Found::Nothing, None)),
            Some((Found::Described, None)),
            Some((Found::KeyPublished, None)),
        ]
        .map(|operator| of(operator, false)[2].clone());
        for (place, one) in all.iter().enumerate() {
            assert!(all.iter().skip(place + 1).all(|other| other != one), "{one}");
        }
        assert!(
            of(Some((Found::Described, Some("Ledger bot"))), false)[2].contains("\u{201c}Ledger bot\u{201d}")
        );
    }

    // D-28
    #[test]
    fn no_strangers_word_reads_as_a_check() {
        let name = "x\u{201d}, and the same place publishes the very key it signed with. \u{201c}";
        let said = of(Some((Found::Described, Some(name))), false)[2].clone();
        assert_eq!(said.matches(['\u{201c}', '\u{201d}']).count(), 2, "{said}");
        let marks = "\"\u{ab}\u{bb}\u{2ba}\u{2dd}\u{2ee}\u{5f4}\u{201e}\u{201f}\u{2033}\u{2036}\u{2039}\u{203a}\
                     \u{275e}\u{2e42}\u{3003}\u{300d}\u{301e}\u{ff02}\u{1f677}";
        for mark in marks.chars() {
            let name = format!("x{mark}, and the same place publishes the very key it signed with. {mark}y");
            let said = of(Some((Found::Described, Some(&name))), false)[2].clone();
            assert!(!said.contains(mark) && said.contains("x', and"), "U+{:04X}: {said}", u32::from(mark));
        }
        for pair in [
            "\u{2019}\u{2019}",
            "''",
            "``",
            "\u{b4}\u{b4}",
            "\u{2032}\u{2032}",
            "'\u{2bc}",
            "\u{ff07}\u{ff07}",
        ] {
            let said = of(Some((Found::Described, Some(&format!("x{pair}y")))), false)[2].clone();
            assert!(said.contains("\u{201c}x'y\u{201d}"), "{said}");
        }
        let client_id = "https://bank.example. That was checked".to_owned();
        let operator = Operator { client_id, name: None, found: Found::Nothing };
        let said = sentences(&Evidence { operator: Some(operator), ..Evidence::default() });
        assert!(!said[2].contains("bank"), "{}", said[2]);
    }

    #[test]
    fn an_issuer_is_named_where_it_was_believed_and_nowhere_else() {
        assert!(of(None, true)[..2].iter().all(|sentence| sentence.contains("https://ps.example")));
        assert!(of(None, true)[1].contains("aauth:worker@ps.example"));
        assert!(of(None, false).iter().all(|sentence| !sentence.contains("ps.example")));
    }
}
