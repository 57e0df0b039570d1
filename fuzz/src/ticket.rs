//! A sealed ticket, as received; and an attempt, sealed here. One attempt under one nonce has one text, and a changed
//! text opens nothing (CORE-110).

use sayso_protocol::b64;
use sayso_protocol::json::{Limits, strict};
use sayso_protocol::ticket::{Attempt, NotOurs, Sealer, is_sealed};

/// The body.
pub fn check(bytes: &[u8]) {
    let sealer = sealer(1);
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(attempt) = sealer.open(text)
    {
        assert!(is_sealed(text));
        let body = text.rsplit('.').next().and_then(|body| b64::decode(body).ok()).expect("a ticket's body");
        let nonce = body.first_chunk::<12>().expect("a ticket's nonce");
        // Sealed by a writer of other member order or spacing, the same attempt would be another text; there is none.
        assert_eq!(sealer.seal(&attempt, *nonce).as_deref(), Ok(text));
    }
    let Ok(attempt) = strict::<Attempt>(bytes, Limits::default()) else { return };
    let mut nonce = [0; 12];
    nonce.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let text = sealer.seal(&attempt, nonce).expect("an attempt can be sealed");
    // Longer texts are refused unread; what an owner registers keeps an attempt far below that.
    if text.len() > 4096 {
        return assert_eq!(sealer.open(&text), Err(NotOurs));
    }
    assert_eq!(sealer.open(&text), Ok(attempt));
    assert_eq!(self::sealer(2).open(&text), Err(NotOurs), "a ticket of another epoch");
    let at =
        bytes.iter().fold(bytes.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let mut altered = text.clone().into_bytes();
    if let Some(byte) = altered.get_mut(at % text.len()) {
        *byte = if *byte == b'A' { b'B' } else { b'A' };
    }
    assert_eq!(sealer.open(&String::from_utf8(altered).expect("ASCII")), Err(NotOurs));
}

/// The sealer of every check, in an epoch of its store.
pub fn sealer(epoch: i64) -> Sealer {
    Sealer::new(&[1; 32], "k1", "https://as.example", epoch).expect("a fixed key")
}
