//! The HTTP server of metrics: one page, `/metrics`.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A question is no longer than this, comes in so many pieces, and each of them within this time.
const LONGEST: usize = 8 * 1024;
const PIECES: usize = 8;
const PATIENCE: Duration = Duration::from_secs(1);
/// Those who are listened to at a time; the one who came first goes where another one comes.
const GUESTS: usize = 64;

/// Answers whoever asks for `/metrics` with what `told` gives, on threads of their own; if it gives none, the
/// server ends.
pub fn serve(listener: TcpListener, told: impl Fn() -> Option<String> + Send + Sync + 'static) {
    thread::spawn(move || listen(&listener, PATIENCE, told));
}

/// Hears each on a thread of its own, so that nobody waits for those who are silent.
fn listen(
    listener: &TcpListener,
    patience: Duration,
    told: impl Fn() -> Option<String> + Send + Sync + 'static,
) {
    let told = Arc::new(told);
    let mut guests: VecDeque<(TcpStream, JoinHandle<()>)> = VecDeque::new();
    for stream in listener.incoming().flatten() {
        guests.retain(|(_, thread)| !thread.is_finished());
        if guests.len() >= GUESTS
            && let Some((first, _)) = guests.pop_front()
        {
            // Where it fails, it has gone.
            let _ = first.shutdown(Shutdown::Both);
        }
        let (Ok(again), told) = (stream.try_clone(), Arc::clone(&told)) else { continue };
        let heard = thread::Builder::new().spawn(move || {
            // Who does not listen any more is no concern of ours.
            let _ = answer(&stream, patience, &*told);
            // The other handle would keep it open.
            let _ = stream.shutdown(Shutdown::Both);
        });
        guests.extend(heard.map(|thread| (again, thread)));
    }
}

fn answer(
    mut stream: &TcpStream,
    patience: Duration,
    told: impl Fn() -> Option<String>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut question = vec![0; LONGEST];
    let mut len = 0;
    for _ in 0..PIECES {
        let count = stream.read(&mut question[len..])?;
        len += count;
        if count == 0 || question[..len].windows(4).any(|it| it == b"\r\n\r\n") {
            break;
        }
    }
    let text = String::from_utf8_lossy(&question[..len]);
    let mut words = text.split([' ', '\r']);
    let path = words.nth(1).unwrap_or("").split('?').next().unwrap_or("");
    let (status, body) = match (text.starts_with("GET "), path) {
        (true, "/metrics") => match told() {
            Some(text) => ("200 OK", text),
            None => ("503 Service Unavailable", "the server ends\n".to_owned()),
        },
        (true, _) => ("404 Not Found", "there is only /metrics\n".to_owned()),
        (false, _) => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody's patience ends here: who waited for another one would wait for ever.
    #[test]
    fn nobody_waits_for_those_who_are_silent() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            listen(&listener, Duration::from_secs(1 << 30), || Some("all is well\n".to_owned()));
        });
        let mut silent = Vec::new();
        for _ in 0..3 {
            silent.extend((0..GUESTS).map(|_| TcpStream::connect(address).unwrap()));
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.ends_with("\r\n\r\nall is well\n"), "{answer}");
        }
        // The first ones had to go.
        assert_eq!(silent[0].read(&mut [0]).unwrap(), 0);
    }
}
