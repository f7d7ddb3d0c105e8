//! A headless browser, controlled over its DevTools protocol: JSON messages, each ended by a zero byte, on the
//! two ends of a pipe.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// A browser that is silent for this time is considered dead.
const SILENCE: Duration = Duration::from_secs(180);
/// Names of the browser on different systems.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Settings for viewing a page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Look {
    /// `light` or `dark`.
    pub(crate) scheme: &'static str,
    /// Size in CSS pixels.
    pub(crate) width: u32,
    /// A phone: touch, and the page's own viewport.
    pub(crate) mobile: bool,
}

/// The browser, with one page open.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    asked: u64,
    events: Vec<Value>,
    profile: PathBuf,
}

impl Browser {
    /// Starts the browser with a new profile; `None` if none is installed.
    pub(crate) fn start(profile: &Path) -> Option<Browser> {
        let name = NAMES.iter().find(|name| {
            let found = Command::new(name).arg("--version").stderr(Stdio::null()).output();
            found.is_ok_and(|output| output.status.success())
        })?;
        let _ = std::fs::remove_dir_all(profile);
        // The browser reads requests from descriptor 3 and answers on 4. The user's profile and a screen are not
        // needed. The sandbox is unavailable as root and in most containers.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null", name])
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--no-first-run"])
            .args(["--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-sync", "--disable-extensions", "--mute-audio"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let requests = child.stdin.take().unwrap();
        let mut browser = Browser {
            child,
            requests,
            messages,
            session: None,
            asked: 0,
            events: Vec::new(),
            profile: profile.to_owned(),
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Sends a request and returns the result.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let mut request = json!({ "id": self.asked, "method": method, "params": params });
        if let Some(session) = &self.session {
            request["sessionId"] = session.as_str().into();
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).unwrap();
        self.requests.flush().unwrap();
        loop {
            let mut message = self.next(method);
            if message["id"] == self.asked {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn next(&self, awaited: &str) -> Value {
        self.messages.recv_timeout(SILENCE).unwrap_or_else(|_| panic!("no answer to {awaited}"))
    }

    /// Runs this script before any script of pages opened later.
    pub(crate) fn prepare(&mut self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }));
    }

    /// Opens a page, waits until it is loaded, and clears earlier events.
    pub(crate) fn open(&mut self, page: &Path, look: Look) {
        let scheme = json!([{ "name": "prefers-color-scheme", "value": look.scheme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": scheme }));
        let size = json!({ "width": look.width, "height": 900, "deviceScaleFactor": 1,
            "mobile": look.mobile });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        self.call("Emulation.setTouchEmulationEnabled", &json!({ "enabled": look.mobile }));
        self.events.clear();
        let opened =
            self.call("Page.navigate", &json!({ "url": format!("file://{}", page.display()) }));
        assert!(opened.get("errorText").is_none(), "{opened}");
        let loaded = |message: &Value| message["method"] == "Page.loadEventFired";
        while !self.events.iter().any(loaded) {
            let message = self.next("the page's loading");
            self.events.push(message);
        }
    }

    /// Returns the value of an expression in the page, once its promise is resolved.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let ask = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", &ask);
        assert!(answer.get("exceptionDetails").is_none(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Presses a key in the focused element.
    pub(crate) fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "text": text });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Moves the pointer along these points with the button down, then releases it.
    pub(crate) fn drag(&mut self, points: &[(f64, f64)]) {
        let last = points.len().saturating_sub(1);
        for (nth, (x, y)) in points.iter().enumerate() {
            let mut say = |kind: &str, button: &str| {
                let event = json!({ "type": kind, "x": x, "y": y, "button": button,
                    "buttons": u8::from(kind != "mouseReleased"), "clickCount": 1 });
                self.call("Input.dispatchMouseEvent", &event);
            };
            say("mouseMoved", if nth == 0 { "none" } else { "left" });
            if nth == 0 {
                say("mousePressed", "left");
            }
            if nth == last {
                say("mouseReleased", "left");
            }
        }
    }

    /// Returns errors on the page since it was opened, and its network requests.
    pub(crate) fn complaints(&mut self, page: &Path) -> Vec<String> {
        let own = format!("file://{}", page.display());
        let complaint = |message: &Value| {
            let params = &message["params"];
            match message["method"].as_str()? {
                "Runtime.exceptionThrown"
                | "Log.entryAdded"
                | "Runtime.consoleAPICalled"
                | "Network.webSocketCreated"
                | "Inspector.targetCrashed" => Some(params.to_string()),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str()?;
                    (url != own && !url.starts_with("data:")).then(|| format!("asked for {url}"))
                }
                _ => None,
            }
        };
        self.events.iter().filter_map(complaint).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser gets a chance to clean up. If it does not react, it is killed.
        self.session = None;
        let request = json!({ "id": self.asked + 1, "method": "Browser.close" });
        let sent = self.requests.write_all(format!("{request}\0").as_bytes());
        let heard = sent.and_then(|()| self.requests.flush()).is_ok();
        // The pipe closes when the browser exits.
        let mut wait = heard;
        while wait {
            wait = self.messages.recv_timeout(Duration::from_secs(10)).is_ok();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
