//! `sayso owner open`: her page, signed in, without her link on any command line (D-26).
//!
//! Command lines can be read by every account of a machine. A browser is therefore given the name of a file that is hers
//! alone, and the file posts the link. Where no browser can be started, the link is printed for her.

use super::client::{Client, Refused};
use super::watch::Reader;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use url::Url;

/// How long the browser may take; the link lives longer, the file does not.
const PATIENCE: Duration = Duration::from_secs(60);
/// So that a sign-in is not missed, her events are listened to for this long before the browser is started.
const BEFORE: Duration = Duration::from_millis(300);

/// A folder that is hers alone, gone when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed holds a link that is spent or soon dead.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Opens her page, or says how.
pub(super) async fn run(client: &Client, as_json: bool) -> anyhow::Result<Option<String>> {
    let made = client.write("sign-in-links", &json!({})).await?;
    if as_json {
        return Ok(Some(made.to_string()));
    }
    let link = made.get("url").and_then(Value::as_str).context("the authority's answer holds no link")?;
    let url = Url::parse(link).context("the authority's link is no URL")?;
    let Some(browser) = browser() else { return Ok(Some(by_hand(&url))) };
    let folder = folder()?;
    let file = folder.0.join("open.html");
    write(&file, &page(&url)?)?;
    let opening = async {
        tokio::time::sleep(BEFORE).await;
        start(&browser, &file)?;
        tokio::time::sleep(PATIENCE).await;
        anyhow::Ok(false)
    };
    let signed_in = tokio::select! {
        outcome = opening => outcome?,
        outcome = signed_in(client) => outcome?,
    };
    Ok(Some(if signed_in { "your page is open".into() } else { by_hand(&url) }))
}

/// Completes when somebody signed in to her page.
async fn signed_in(client: &Client) -> anyhow::Result<bool> {
    loop {
        let (mut reader, mut seen) = (Reader::default(), false);
        let mut look = |piece: &[u8]| {
            let events = reader.take(piece);
            seen |= events.iter().any(|event| event.data.get("type") == Some(&json!("signed_in")));
            seen
        };
        match client.follow("events", None, &mut look).await {
            _ if seen => return Ok(true),
            Err(fault) if fault.downcast_ref::<Refused>().is_some() => return Err(fault),
            _ => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}

/// What starts a browser here: `BROWSER`, or the desktop's own way where there is a desktop.
fn browser() -> Option<PathBuf> {
    let named = env::var_os("BROWSER").filter(|name| !name.is_empty());
    if let Some(name) = named {
        return Some(name.into());
    }
    if cfg!(target_os = "macos") {
        return Some("open".into());
    }
    let shown = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    let found = env::split_paths(&env::var_os("PATH")?).any(|folder| folder.join("xdg-open").is_file());
    (shown && found).then(|| "xdg-open".into())
}

fn start(browser: &Path, file: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(browser);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().with_context(|| {
        format!("cannot start {}; set BROWSER to a program that opens a file", browser.display())
    })?;
    Ok(())
}

fn by_hand(url: &Url) -> String {
    let tunnel = match (url.scheme(), url.port()) {
        ("http", Some(port)) => format!(
            "\nfrom another machine, first: ssh -L {port}:localhost:{port} and this machine's name; then the same link"
        ),
        _ => String::new(),
    };
    format!("open this in a browser, once and within five minutes:\n{url}{tunnel}")
}

/// A page that posts the link by itself, or at a press where scripts are off.
fn page(url: &Url) -> anyhow::Result<String> {
    let (action, link) = url.as_str().rsplit_once('/').context("the authority's link has no path")?;
    let plain = |text: &str| !text.contains(['"', '<', '>', '&', '\'']);
    if !plain(action) || !plain(link) {
        anyhow::bail!("the authority's link is none that this program knows");
    }
    Ok(format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>sayso</title>\n<form method=\"post\" action=\"{action}\">\n\
         <input type=\"hidden\" name=\"link\" value=\"{link}\">\n<button>Open your page</button>\n</form>\n\
         <script>document.forms[0].submit()</script>\n"
    ))
}

fn folder() -> anyhow::Result<Folder> {
    let path = env::temp_dir().join(format!("sayso-{}", crate::clock::name()?));
    DirBuilder::new()
        .mode(0o700)
        .create(&path)
        .with_context(|| format!("cannot make the folder {}", path.display()))?;
    Ok(Folder(path))
}

fn write(file: &Path, page: &str) -> anyhow::Result<()> {
    let made = OpenOptions::new().create_new(true).write(true).mode(0o600).open(file);
    let mut made = made.with_context(|| format!("cannot write {}", file.display()))?;
    made.write_all(page.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_file_is_hers_posts_the_link_and_goes() {
        let url = Url::parse("http://localhost:8440/s/p_-x/sign-in/abc").unwrap();
        let folder = folder().unwrap();
        let (path, file) = (folder.0.clone(), folder.0.join("open.html"));
        write(&file, &page(&url).unwrap()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&file)), (0o700, 0o600));
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("action=\"http://localhost:8440/s/p_-x/sign-in\""), "{text}");
        assert!(text.contains("name=\"link\" value=\"abc\""), "{text}");
        drop(folder);
        assert!(!path.exists());
        assert!(page(&Url::parse("http://localhost/x'/sign-in/a").unwrap()).is_err());
    }
}
