//! The HTTP server of metrics: one page, `/metrics`.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longest request, in bytes. Further bytes are not read.
const MAX_REQUEST_BYTES: usize = 8 * 1024;
/// Most reads for a request. After them, the server answers the part that it has.
const MAX_READS: usize = 8;
/// Time limit of each read and each write. After it, the server closes the connection.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Most simultaneous connections. A further one closes the oldest.
const MAX_CLIENTS: usize = 64;

/// Answers requests for `/metrics` with the text that `told` returns, on separate threads. If `told`
/// returns `None`, the server is ending, and the response is 503.
pub fn serve(listener: TcpListener, told: impl Fn() -> Option<String> + Send + Sync + 'static) {
    thread::spawn(move || listen(&listener, TIMEOUT, told));
}

/// Serves each client on a separate thread, so that a silent client delays no other.
fn listen(
    listener: &TcpListener,
    timeout: Duration,
    told: impl Fn() -> Option<String> + Send + Sync + 'static,
) {
    let told = Arc::new(told);
    let mut clients: VecDeque<(TcpStream, JoinHandle<()>)> = VecDeque::new();
    for stream in listener.incoming().flatten() {
        clients.retain(|(_, thread)| !thread.is_finished());
        if clients.len() >= MAX_CLIENTS
            && let Some((first, _)) = clients.pop_front()
        {
            // If this fails, the client has gone.
            let _ = first.shutdown(Shutdown::Both);
        }
        let (Ok(again), told) = (stream.try_clone(), Arc::clone(&told)) else { continue };
        let thread = thread::Builder::new().spawn(move || {
            // A client that has gone needs no answer.
            let _ = answer(&stream, timeout, &*told);
            // The other handle would keep it open.
            let _ = stream.shutdown(Shutdown::Both);
        });
        clients.extend(thread.map(|thread| (again, thread)));
    }
}

fn answer(
    mut stream: &TcpStream,
    timeout: Duration,
    told: impl Fn() -> Option<String>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    let mut request = vec![0; MAX_REQUEST_BYTES];
    let mut len = 0;
    for _ in 0..MAX_READS {
        let count = stream.read(&mut request[len..])?;
        len += count;
        if count == 0 || request[..len].windows(4).any(|it| it == b"\r\n\r\n") {
            break;
        }
    }
    let text = String::from_utf8_lossy(&request[..len]);
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

    /// The timeout never expires here. If a silent client delayed another one, the test would hang.
    #[test]
    fn a_silent_client_delays_no_other() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            listen(&listener, Duration::from_secs(1 << 30), || Some("all is well\n".to_owned()));
        });
        let mut silent = Vec::new();
        for _ in 0..3 {
            silent.extend((0..MAX_CLIENTS).map(|_| TcpStream::connect(address).unwrap()));
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.ends_with("\r\n\r\nall is well\n"), "{answer}");
        }
        // The server has closed the oldest connections.
        assert_eq!(silent[0].read(&mut [0]).unwrap(), 0);
    }
}
