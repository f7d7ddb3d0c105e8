//! A real web server.

use super::kernel::{Speaks, pattern, request};
use plait_live::Namespace;
use std::env;
use std::fs;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// nginx with some files, at a local address of a namespace.
pub struct Nginx {
    child: Child,
    dir: PathBuf,
    pub address: SocketAddr,
}

/// Returns the program: `$PLAIT_NGINX`, or the usual path of packages.
fn program() -> PathBuf {
    env::var_os("PLAIT_NGINX").map_or_else(|| "/usr/sbin/nginx".into(), PathBuf::from)
}

/// Returns why nginx is not available, if it is not.
pub fn obstacle() -> Option<String> {
    let known = Command::new(program()).arg("-v").output().is_ok_and(|it| it.status.success());
    (!known).then(|| "downloads from nginx: it is not there (Debian package nginx)".to_owned())
}

impl Nginx {
    /// Creates a directory and serves files of these lengths from it. The name of a file is its length.
    pub fn start(space: &Namespace, dir: &Path, sizes: &[usize]) -> io::Result<Nginx> {
        let _ = fs::remove_dir_all(dir);
        let files = dir.join("files");
        fs::create_dir_all(&files)?;
        for size in sizes {
            fs::write(files.join(size.to_string()), pattern(*size))?;
        }
        let address = SocketAddr::new([127, 0, 0, 1].into(), 8080);
        let here = dir.display();
        let config = format!(
            "daemon off; worker_processes 1; user root; pid {here}/pid; error_log {here}/errors;
             events {{ worker_connections 64; }}
             http {{
               access_log off; client_body_temp_path {here}; proxy_temp_path {here};
               fastcgi_temp_path {here}; uwsgi_temp_path {here}; scgi_temp_path {here};
               server {{ listen {address}; root {}; }}
             }}",
            files.display()
        );
        fs::write(dir.join("nginx.conf"), config)?;
        let errors = dir.join("errors");
        let child = space.within(|| {
            let mut command = Command::new(program());
            command.arg("-e").arg(&errors).arg("-p").arg(dir).arg("-c").arg(dir.join("nginx.conf"));
            command.spawn()
        })??;
        let mut nginx = Nginx { child, dir: dir.to_owned(), address };
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) && nginx.child.try_wait()?.is_none() {
            if space.within(|| TcpStream::connect(address))?.is_ok() {
                return Ok(nginx);
            }
            thread::sleep(Duration::from_millis(20));
        }
        let errors = fs::read_to_string(errors).unwrap_or_default();
        Err(io::Error::other(format!("nginx does not listen: {errors}")))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master passes SIGTERM on, so that its worker ends too.
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        if !told.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Downloads a file through a kernel socket, from the namespace of the calling thread.
pub fn fetch(to: SocketAddr, speaks: Speaks, size: usize) -> io::Result<Vec<u8>> {
    let mut stream = request(to, speaks, ["GET ", &format!("/{size} HTTP/1.0\r\n\r\n")])?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let head = answer.windows(4).position(|it| it == b"\r\n\r\n");
    let head = head.ok_or_else(|| io::Error::other("the answer is no HTTP"))?;
    assert!(
        answer.starts_with(b"HTTP/1.1 200 OK\r\n"),
        "{:?}",
        String::from_utf8_lossy(&answer[..head])
    );
    answer.drain(..head + 4);
    Ok(answer)
}
