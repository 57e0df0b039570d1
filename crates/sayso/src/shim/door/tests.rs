//! Who gets in over HTTP, and who does not.

use super::*;
use http::HeaderValue;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

// D-34
#[tokio::test]
async fn off_loopback_nothing_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    let known = Outside { url: Some("https://shim.example".into()), ..Outside::default() };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:1"] {
        let place: Place = address.parse().unwrap();
        for outside in [&Outside::default(), &known] {
            assert!(place.open(&secret, outside).await.err().unwrap().to_string().contains("TLS"));
        }
    }
    let place: Place = "127.0.0.1:0".parse().unwrap();
    for url in ["http://shim.example", "https://shim.example/", "shim.example"] {
        let outside = Outside { url: Some(url.into()), ..Outside::default() };
        assert!(place.open(&secret, &outside).await.is_err(), "{url}");
    }
    let socket = Place::Socket(dir.path().join("s"));
    assert!(socket.open(&secret, &known).await.is_err());
    assert!(!secret.exists());
    for text in ["", "unix:", "localhost:1", "8450", "https://x"] {
        assert!(text.parse::<Place>().is_err(), "{text}");
    }
}

// D-34, D-16
#[tokio::test]
async fn on_loopback_the_secret_the_host_and_the_origin_have_to_be_right() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    let place: Place = "127.0.0.1:0".parse().unwrap();
    let opened = place.open(&path, &Outside::default()).await.unwrap();
    let (Bound::Address(listener, None), guard, _) = opened else { panic!() };
    assert_eq!(mode(&path), 0o600);
    let secret = format!("Bearer {}", fs::read_to_string(&path).unwrap().trim());
    let host = listener.local_addr().unwrap().to_string();
    let (own, local) =
        (format!("http://{host}"), format!("localhost:{}", listener.local_addr().unwrap().port()));
    let status = |pairs: &[(&'static str, &str)]| {
        guard.admit(&headers(pairs)).err().map(|(status, ..)| status.as_u16())
    };
    assert_eq!(status(&[("host", &host), ("authorization", &secret)]), None);
    assert_eq!(status(&[("host", &local), ("authorization", &secret), ("origin", &own)]), None);
    assert_eq!(status(&[("host", &host)]), Some(401));
    assert_eq!(status(&[("host", &host), ("authorization", "Bearer x")]), Some(401));
    assert_eq!(status(&[("host", &host), ("authorization", &secret.to_lowercase())]), Some(401));
    assert_eq!(status(&[("host", &host), ("authorization", &secret), ("authorization", &secret)]), Some(401));
    assert_eq!(status(&[("host", "evil.example"), ("authorization", &secret)]), Some(421));
    assert_eq!(status(&[("authorization", &secret)]), Some(421));
    for origin in ["null", "https://evil.example", "http://127.0.0.1:1"] {
        assert_eq!(status(&[("host", &host), ("authorization", &secret), ("origin", origin)]), Some(403));
    }
}

// D-34, D-16
#[tokio::test]
async fn a_name_it_is_known_by_is_one_it_answers_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    let place: Place = "127.0.0.1:0".parse().unwrap();
    let outside = Outside { url: Some("https://shim.example".into()), ..Outside::default() };
    let (_, guard, known) = place.open(&path, &outside).await.unwrap();
    assert_eq!(known, "https://shim.example");
    let secret = format!("Bearer {}", fs::read_to_string(&path).unwrap().trim());
    let status = |host: &str, origin: &str| {
        let headers = headers(&[("host", host), ("origin", origin), ("authorization", &secret)]);
        guard.admit(&headers).err().map(|(status, ..)| status.as_u16())
    };
    assert_eq!(status("shim.example", "https://shim.example"), None);
    assert_eq!(status("shim.example:443", "https://shim.example"), None);
    assert_eq!(status("shim.example", "http://shim.example"), Some(403));
    assert_eq!(status("shim.example:8443", "https://shim.example"), Some(421));
}

// D-34
#[tokio::test]
async fn a_socket_is_its_users_alone_and_nobody_elses_file_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (path, secret) = (dir.path().join("shim.sock"), dir.path().join("secret"));
    let place = Place::Socket(path.clone());
    let none = Outside::default();
    let (bound, guard, _) = place.open(&secret, &none).await.unwrap();
    assert_eq!(mode(&path), 0o600);
    assert!(!secret.exists() && fs::read_dir(dir.path()).unwrap().count() == 1);
    assert!(place.open(&secret, &none).await.is_err(), "in use");
    assert!(guard.admit(&headers(&[("origin", "https://evil.example")])).is_err());
    assert!(guard.admit(&headers(&[("host", "anything")])).is_ok());
    drop(bound);
    assert!(!path.exists());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    place.open(&secret, &none).await.unwrap();
    fs::write(&path, "a letter").unwrap();
    assert!(place.open(&secret, &none).await.is_err());
    assert_eq!(fs::read(&path).unwrap(), b"a letter");
}
