//! The gRPC door over a real socket: what is a call of it, and what is not.

use super::cast::{Door, House, Request, TRADE};
use crate::grpc::message::{Attributes, CheckRequest, CheckResponse, Request as Asked, Told};
use crate::serve_grpc;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::net::{TcpListener, TcpStream};

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

async fn open() -> (House, SendRequest<Full<Bytes>>) {
    let house = House::open();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_grpc(listener, house.authorizer.clone(), std::future::pending()));
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    (house, sender)
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

fn check(request: &Request) -> Bytes {
    let http = Some(request.message(Door::Lines));
    framed(&CheckRequest { attributes: Some(Attributes { request: Some(Asked { http }) }) }.encode_to_vec())
}

/// HTTP status, gRPC status, message.
async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    path: &str,
    kind: &str,
    body: Bytes,
) -> (u16, String, Bytes) {
    let request = http::Request::post(format!("http://checks.local{path}"))
        .header("content-type", kind)
        .header("te", "trailers")
        .body(Full::new(body))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    let told = |headers: &http::HeaderMap| Some(headers.get("grpc-status")?.to_str().unwrap().to_owned());
    let status = told(&parts.headers).or_else(|| body.trailers().and_then(told)).unwrap_or_default();
    (parts.status.as_u16(), status, body.to_bytes())
}

#[tokio::test]
async fn a_check_is_answered_in_one_message() {
    let (_house, mut sender) = open().await;
    let (http, grpc, body) = send(&mut sender, CHECK, "application/grpc", check(&Request::list())).await;
    assert_eq!((http, grpc.as_str(), body[0]), (200, "0", 0));
    let answer = CheckResponse::decode(&body[5..]).unwrap();
    assert!(matches!(answer.told, Some(Told::Ok(_))));
    let call = check(&Request::call("execute_trade", TRADE));
    let (http, grpc, body) = send(&mut sender, CHECK, "application/grpc+proto", call).await;
    assert_eq!((http, grpc.as_str()), (200, "0"));
    let answer = CheckResponse::decode(&body[5..]).unwrap();
    assert_eq!(answer.status.unwrap().code, 16);
    let Some(Told::Denied(denied)) = answer.told else { panic!("not denied") };
    assert_eq!(denied.status.unwrap().code, 401);
}

// MCP-09
#[tokio::test]
async fn what_is_no_check_is_no_yes() {
    let (house, mut sender) = open().await;
    let list = check(&Request::list());
    let other = "/envoy.service.auth.v2.Authorization/Check";
    let compressed: Bytes = [&[1], &list[1..]].concat().into();
    let broken = framed(b"\xff\xff\xff");
    let huge: Bytes = framed(&vec![0; 1 << 20]);
    for (path, kind, body, expected) in [
        (other, "application/grpc", list.clone(), "12"),
        ("/mcp", "application/grpc", list.clone(), "12"),
        (CHECK, "application/grpc", compressed, "12"),
        (CHECK, "application/grpc", broken, "3"),
        (CHECK, "application/grpc", Bytes::new(), "3"),
        (CHECK, "application/grpc", list.slice(..list.len() - 1), "3"),
        (CHECK, "application/grpc", huge, "8"),
    ] {
        let (_, grpc, body) = send(&mut sender, path, kind, body).await;
        assert_eq!((grpc.as_str(), body.len()), (expected, 0));
    }
    for kind in ["application/json", "application/grpc-web", "application/grpc+json", ""] {
        let (http, grpc, _) = send(&mut sender, CHECK, kind, list.clone()).await;
        assert_eq!((http, grpc.as_str()), (415, ""), "{kind}");
    }
    // A message without anything in it is a message, and is told why it gets no.
    let (_, grpc, body) = send(&mut sender, CHECK, "application/grpc", framed(b"")).await;
    let answer = CheckResponse::decode(&body[5..]).unwrap();
    assert!(grpc == "0" && answer.status.unwrap().code == 7 && matches!(answer.told, Some(Told::Denied(_))));
    assert_eq!(house.asked(), 0);
}
