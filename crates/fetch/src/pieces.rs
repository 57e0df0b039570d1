//! The body of an answer as it arrives, for whoever passes it on.
//! It keeps nothing back: a piece is given away when it is here, and none is held after that. How much is read
//! altogether is its reader's to bound.

use crate::FetchError;
use crate::client::fault;
use bytes::Bytes;

/// A body, piece by piece. Dropped, it ends the exchange.
pub struct Pieces(Source);

enum Source {
    Whole(Option<Bytes>),
    Arriving(reqwest::Response),
    After(Option<Bytes>, Box<Pieces>),
}

impl Pieces {
    /// A body that is here already.
    #[must_use]
    pub fn whole(body: Bytes) -> Pieces {
        Pieces(Source::Whole(Some(body)))
    }

    pub(crate) fn arriving(answer: reqwest::Response) -> Pieces {
        Pieces(Source::Arriving(answer))
    }

    /// These bytes, read already, and then the rest.
    #[must_use]
    pub fn after(read: Bytes, rest: Pieces) -> Pieces {
        Pieces(Source::After(Some(read), Box::new(rest)))
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// When the connection breaks before the body is complete.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let mut source = &mut self.0;
        loop {
            match source {
                Source::Whole(body) => return Ok(body.take().filter(|body| !body.is_empty())),
                Source::Arriving(answer) => return answer.chunk().await.map_err(fault),
                Source::After(read, rest) => match read.take().filter(|read| !read.is_empty()) {
                    Some(read) => return Ok(Some(read)),
                    None => source = &mut rest.0,
                },
            }
        }
    }

    /// All that is left, if it is no more than this many bytes.
    ///
    /// # Errors
    /// When there is more, or the connection breaks.
    pub async fn rest(mut self, most: usize) -> Result<Bytes, FetchError> {
        let mut body = bytes::BytesMut::new();
        while let Some(piece) = self.next().await? {
            if piece.len() > most.saturating_sub(body.len()) {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_read_comes_first_and_nothing_is_held_beyond_the_bound() {
        let body = || Pieces::after("ab".into(), Pieces::after(Bytes::new(), Pieces::whole("cd".into())));
        assert_eq!(body().rest(4).await.unwrap(), "abcd");
        assert_eq!(body().rest(3).await, Err(FetchError::TooLarge));
        let mut pieces = body();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "ab");
        assert_eq!(pieces.next().await.unwrap().unwrap(), "cd");
        assert_eq!(pieces.next().await.unwrap(), None);
    }
}
