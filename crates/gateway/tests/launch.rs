//! What only a process of its own can show: a child that dies with its gateway, keeps no descriptor and no variable of
//! it (D-31). This test is a program that launches, serves and checks, by its first argument.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a check that cannot be made has failed")]
#![expect(clippy::indexing_slicing, reason = "a missing part is a failure")]

use sayso_gateway::{StdioCommand, Upstream, launch};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn main() -> ExitCode {
    if let Some(failed) = launch(std::env::args_os()) {
        return failed;
    }
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|role| role == "serve") {
        serve(&arguments[2]);
    }
    let checks = [
        ("a_killed_gateway_leaves_no_child", a_killed_gateway_leaves_no_child as fn()),
        ("a_child_inherits_three_descriptors_and_few_variables", a_child_inherits_three_descriptors),
        ("an_orphan_is_not_launched", an_orphan_is_not_launched),
        ("a_command_that_is_not_there_says_so", a_command_that_is_not_there_says_so),
    ];
    // What test runners ask of a test binary: its list, without ignored ones, and one test by its name.
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let wanted = |name: &str| !has("--exact") || has(name);
    for (name, check) in checks.into_iter().filter(|(name, _)| wanted(name) && !has("--ignored")) {
        if has("--list") {
            println!("{name}: test");
        } else {
            check();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

/// The gateway's part: holds an upstream until it is killed.
fn serve(line: &str) -> ! {
    let command = StdioCommand::parse(line, &[], |name| std::env::var_os(name)).unwrap();
    let command = command.launched_by(std::env::current_exe().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let upstream = Upstream::open(command).unwrap();
    runtime.block_on(async {
        upstream.survey().await.unwrap();
        std::future::pending::<()>().await;
    });
    panic!("it is killed before this");
}

struct Scene {
    folder: tempfile::TempDir,
    gateway: Child,
}

impl Scene {
    /// A gateway with a stubborn child, and with what `shell` does before it begins.
    fn begin(shell: &str) -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/server.py");
        let at = folder.path().join("pids");
        let line = format!("{} {} --stubborn --pids {}", python(), script.display(), at.display());
        let gateway = Command::new("sh")
            .args(["-c", &format!("{shell}\nexec \"$0\" serve \"$1\"")])
            .arg(std::env::current_exe().unwrap())
            .arg(line)
            .env("SECRET_OF_THE_GATEWAY", "x")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { folder, gateway }
    }

    fn child(&self) -> PathBuf {
        for _ in 0..400 {
            let pids = std::fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
            if let Some(pid) = pids.lines().next() {
                return PathBuf::from("/proc").join(pid);
            }
            sleep(Duration::from_millis(25));
        }
        panic!("no child was started");
    }

    fn kill(&mut self) {
        self.gateway.kill().unwrap();
        self.gateway.wait().unwrap();
    }
}

fn python() -> String {
    let told = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}

fn is_alive(process: &Path) -> bool {
    std::fs::read_to_string(process.join("stat")).is_ok_and(|status| !status.contains(") Z "))
}

fn a_killed_gateway_leaves_no_child() {
    let mut scene = Scene::begin("");
    let child = scene.child();
    assert!(is_alive(&child));
    scene.kill();
    for _ in 0..200 {
        if !is_alive(&child) {
            return;
        }
        sleep(Duration::from_millis(25));
    }
    panic!("the child outlived its gateway");
}

fn a_child_inherits_three_descriptors() {
    let mut scene = Scene::begin("exec 7</dev/null 8>/dev/null");
    let child = scene.child();
    let gateway = PathBuf::from(format!("/proc/{}/fd/7", scene.gateway.id()));
    assert!(gateway.exists(), "there is something to inherit");
    let mut open: Vec<u32> = std::fs::read_dir(child.join("fd"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    open.sort_unstable();
    assert_eq!(open, [0, 1, 2]);
    let environment = std::fs::read(child.join("environ")).unwrap();
    let names: Vec<String> = environment
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
        .map(|line| String::from_utf8_lossy(line).split('=').next().unwrap().to_owned())
        .collect();
    assert!(names.iter().all(|name| ["PATH", "HOME", "LANG", "TERM"].contains(&name.as_str())), "{names:?}");
    let leads = std::fs::read_to_string(child.join("stat")).unwrap();
    let fields: Vec<&str> = leads.rsplit(") ").next().unwrap().split(' ').collect();
    let pid = child.file_name().unwrap().to_str().unwrap();
    assert_eq!(fields[2], pid, "it leads a process group of its own");
    scene.kill();
}

fn an_orphan_is_not_launched() {
    let me = std::env::current_exe().unwrap();
    let launched = Command::new(me).args(["--become-upstream", "1", "echo", "run"]).output().unwrap();
    assert_eq!((launched.status.code(), launched.stdout.as_slice()), (Some(127), &b""[..]));
}

fn a_command_that_is_not_there_says_so() {
    let me = std::env::current_exe().unwrap();
    let parent = std::process::id().to_string();
    let launched = Command::new(me).args(["--become-upstream", &parent, "/nonexistent"]).output().unwrap();
    assert_eq!(launched.status.code(), Some(127));
    assert!(String::from_utf8(launched.stderr).unwrap().contains("cannot be run"));
}
