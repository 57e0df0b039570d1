//! A key that another thread of the program holds, as a token or a signing agent would: a whole call with it, one that is
//! taken up by it, and one that cannot go on because it does not sign.

use crate::house::{House, Person, key};
use sayso_agent::{Fault, Outcome};
use sayso_protocol::SigningKey;
use sayso_protocol::key::Signer;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

type Question = (Vec<u8>, mpsc::Sender<[u8; 64]>);

/// What is here of it: its public half, and the way to whoever signs.
struct Holder {
    public: [u8; 32],
    ask: Mutex<mpsc::Sender<Question>>,
}

impl Signer for Holder {
    fn public_key(&self) -> [u8; 32] {
        self.public
    }

    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        let (answer, answered) = mpsc::channel();
        self.ask.lock().ok()?.send((message.to_vec(), answer)).ok()?;
        answered.recv_timeout(Duration::from_secs(5)).ok()
    }
}

/// A key of a thread that signs this often and then is gone.
fn held(seed: u8, most: usize) -> (SigningKey, Arc<AtomicUsize>) {
    let (inside, signed) = (key(seed), Arc::new(AtomicUsize::new(0)));
    let public = *inside.verifying().as_bytes();
    let (ask, asked) = mpsc::channel::<Question>();
    let count = signed.clone();
    std::thread::spawn(move || {
        for (message, answer) in asked.iter().take(most) {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = answer.send(inside.sign(&message).unwrap());
        }
    });
    (SigningKey::elsewhere(Arc::new(Holder { public, ask: Mutex::new(ask) })).unwrap(), signed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_call_is_made_with_a_key_that_is_not_here() {
    let house = House::honest(true, 2).await;
    let (elsewhere, signed) = held(0x31, usize::MAX);
    let mut errand = house.errand(30);
    errand.key = Some(elsewhere);
    let outcome = house.agent().call(&errand, &Person::willing()).await.unwrap();
    assert!(matches!(outcome, Outcome::Result { failed: false, .. }), "{outcome:?}");
    // The house has checked each signature: an agreement, two polls, a call.
    assert_eq!((signed.load(Ordering::SeqCst), house.plan.agent_key()), (4, key(0x31).verifying().clone()));
    assert!(house.agent().keys().identities().unwrap().is_empty(), "no key was drawn in its place");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_sign_leaves_the_wait_to_be_taken_up() {
    let house = House::honest(true, 1).await;
    // It signs the agreement and is pulled out before the first poll.
    let (pulled, _) = held(0x32, 1);
    let mut errand = house.errand(30);
    errand.key = Some(pulled);
    let fault = house.agent().call(&errand, &Person::willing()).await.unwrap_err();
    assert!(matches!(fault, Fault::Resource | Fault::Unwritable), "{fault}");
    assert_eq!(house.calls().len(), 1, "nothing signed by anybody else went out");
    let (back, _) = held(0x32, usize::MAX);
    errand.key = Some(back);
    let person = Person::willing();
    let outcome = house.agent().call(&errand, &person).await.unwrap();
    assert!(matches!(outcome, Outcome::Result { .. }), "{outcome:?}");
    assert!(person.asked.lock().unwrap().is_empty(), "the agreement stands");
    let (another, _) = held(0x33, usize::MAX);
    errand.key = Some(another);
    let person = Person::willing();
    let _ = house.agent().call(&errand, &person).await;
    assert_eq!(person.asked.lock().unwrap().len(), 1, "another key starts anew");
}
