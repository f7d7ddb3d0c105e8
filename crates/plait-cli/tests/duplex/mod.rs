//! `plait get HOST:PORT` as a pipe between two programs: complete in both directions, whichever ends first.
#![allow(unreachable_pub)]

use crate::net::kernel::{self, Speaks};
use crate::net::{self, Bed, Family, Line};
use crate::{PLAIT, Running, file};
use libtest_mimic::{Failed, Trial};
use plait_live::Namespace;
use socket2::Socket;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// The side that finishes sending first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EndsFirst {
    /// The client: the service answers after the client's end.
    Client,
    /// The service: standard input continues after the end of the answer.
    Service,
    /// Neither: both send at the same time.
    Neither,
}

/// Bytes up and down, and the side that ends first.
type Transfer = (usize, usize, EndsFirst);

/// The transfers of `make test`.
const FEW: [Transfer; 5] = [
    (0, 0, EndsFirst::Neither),
    (0, 300_000, EndsFirst::Client),
    (2_500_000, 5, EndsFirst::Service),
    (1_000_000, 1_000_000, EndsFirst::Neither),
    (2_000_000, 1, EndsFirst::Client),
];

/// The transfers of `make soak`: 40 with the four combinations of family and protocol.
const MANY: [Transfer; 10] = [
    (0, 0, EndsFirst::Neither),
    (1, 0, EndsFirst::Service),
    (0, 1, EndsFirst::Client),
    (20_000_000, 5, EndsFirst::Service),
    (5, 20_000_000, EndsFirst::Client),
    (3_000_000, 3_000_000, EndsFirst::Neither),
    (50_000_000, 50_000_000, EndsFirst::Neither),
    (20_000_000, 20_000_000, EndsFirst::Client),
    (200_000_000, 1_000, EndsFirst::Service),
    (200_000_000, 200_000_000, EndsFirst::Neither),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for family in [Family::V4, Family::V6] {
        for speaks in [Speaks::Tcp, Speaks::Mptcp] {
            let name = format!("a_pipe_is_whole_in_both_directions/{family:?}/{speaks:?}");
            trials.push(Trial::test(name, move || whole(family, speaks)));
        }
    }
    trials.push(Trial::test("a_document_has_the_traffic_of_each_path", documented));
    trials.push(Trial::test("a_pipe_that_breaks_is_no_success", broken));
    trials
}

/// For each connection, a service returns the hash of all received data once it has ended.
fn service(
    space: &Namespace,
    at: SocketAddr,
    speaks: Speaks,
    transfers: Vec<Transfer>,
) -> io::Result<Receiver<io::Result<String>>> {
    let listener = space.within(|| -> io::Result<Socket> {
        let listener = kernel::socket(at.ip(), speaks)?;
        listener.set_reuse_address(true)?;
        listener.bind(&at.into())?;
        listener.listen(8)?;
        Ok(listener)
    })??;
    let (done, hashes) = mpsc::channel();
    thread::spawn(move || {
        for (_, down, first) in transfers {
            let answer = || {
                let (stream, _) = kernel::persist(|| listener.accept())?;
                answer(&stream, down, first)
            };
            if done.send(answer()).is_err() {
                return;
            }
        }
    });
    Ok(hashes)
}

/// Sends `down` bytes, ends its side, and reads to the peer's end. Returns the hash of the received data.
fn answer(stream: &Socket, down: usize, first: EndsFirst) -> io::Result<String> {
    let read = || -> io::Result<String> {
        let (mut bytes, mut reader) = (Vec::new(), stream);
        reader.read_to_end(&mut bytes)?;
        Ok(kernel::hash(&bytes))
    };
    let write = || -> io::Result<()> {
        let mut writer = stream;
        writer.write_all(&kernel::pattern(down))?;
        stream.shutdown(Shutdown::Write)
    };
    match first {
        EndsFirst::Service => {
            write()?;
            // The end of the answer arrives before most data of the other direction.
            thread::sleep(Duration::from_millis(100));
            read()
        }
        EndsFirst::Client => {
            let hash = read()?;
            write()?;
            Ok(hash)
        }
        EndsFirst::Neither => thread::scope(|scope| {
            let writing = scope.spawn(write);
            let hash = read()?;
            writing.join().unwrap()?;
            Ok(hash)
        }),
    }
}

/// A bed with a service, and the flags of a client of it.
fn bed(family: Family, mbit: u64) -> io::Result<(Bed, SocketAddr, [String; 4])> {
    let bed = Bed::build(family, &[Line::new(mbit, 4, 400_000), Line::new(mbit, 8, 400_000)])?;
    bed.own_service()?;
    let guest = |path| format!("{}@c{path}", family.guest(path));
    let from = ["--from".to_owned(), guest(0), "--from".to_owned(), guest(1)];
    Ok((bed, SocketAddr::new(family.service(), 80), from))
}

/// R57: each direction ends separately. Both hashes are equal, and the exit code is 0.
fn whole(family: Family, speaks: Speaks) -> Result<(), Failed> {
    let soak = std::env::var_os("PLAIT_SOAK").is_some();
    let transfers = if soak { &MANY[..] } else { &FEW[..] };
    let (bed, at, from) = bed(family, if soak { 400 } else { 100 })?;
    let hashes = service(&bed.server, at, speaks, transfers.to_vec())?;
    for transfer in transfers {
        let (up, down, _) = *transfer;
        let sent = kernel::pattern(up);
        let expected = kernel::hash(&sent);
        let mut child = spawn_get(&bed.client, at, &from)?;
        let mut stdin = child.stdin.take().unwrap();
        let feeding = thread::spawn(move || stdin.write_all(&sent));
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        feeding.join().unwrap()?;
        let what = format!("{family:?} {speaks:?} {transfer:?}: {said}");
        assert_eq!(output.status.code(), Some(0), "{what}");
        assert_eq!(kernel::hash(&output.stdout), kernel::hash(&kernel::pattern(down)), "{what}");
        let received = hashes.recv().unwrap().map_err(|error| format!("{what}: {error}"))?;
        assert_eq!(received, expected, "{what}");
        // The output has one line a path, and one about extra bytes if there are two paths.
        let paths = ["c0: sent ", "c1: sent "].iter().filter(|it| said.contains(**it)).count();
        let extra = usize::from(said.contains("extra: sent "));
        assert!((1..=2).contains(&paths) && said.lines().count() == paths + extra, "{what}");
        assert!(paths == 1 || extra == 1, "{what}");
        assert!(speaks != Speaks::Mptcp || up < 1_000_000 || paths == 2, "{what}");
    }
    Ok(())
}

/// `--json` has the same counts as the lines on stderr.
fn documented() -> Result<(), Failed> {
    let (bed, at, from) = bed(Family::V4, 100)?;
    let transfer = (700_000, 30_000, EndsFirst::Neither);
    let hashes = service(&bed.server, at, Speaks::Mptcp, vec![transfer])?;
    let answer = file("answer");
    let output = ["--json", "--output", answer.to_str().unwrap()].map(str::to_owned);
    let mut child = spawn_get(&bed.client, at, &[&output[..], &from].concat())?;
    child.stdin.take().unwrap().write_all(&kernel::pattern(transfer.0))?;
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(hashes.recv().unwrap()?, kernel::hash(&kernel::pattern(transfer.0)));
    assert_eq!(std::fs::read(&answer)?, kernel::pattern(transfer.1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(document["schema"], "plait.get/1");
    assert_eq!(document["multipath"], true);
    assert_eq!(document["sent_bytes"], transfer.0);
    assert_eq!(document["received_bytes"], transfer.1);
    let paths = document["paths"].as_array().unwrap();
    let sum = |key: &str| paths.iter().map(|path| path[key].as_f64().unwrap()).sum::<f64>();
    assert_eq!(
        (paths[0]["name"].as_str(), paths[0]["address"].as_str()),
        (Some("c0"), Some("10.98.1.77"))
    );
    assert!(sum("sent_bytes") >= transfer.0 as f64 && sum("received_bytes") >= transfer.1 as f64);
    assert!((sum("share") - 1.0).abs() < 1e-9, "{document}");
    // Without a file for the answer, stdout cannot hold both.
    let refused =
        Command::new(PLAIT).args(["get", "10.99.0.1:80", "--json", "--from", "lo"]).output()?;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    Ok(())
}

/// Starts `plait get` in a namespace, with pipes for its stdin, stdout and stderr.
fn spawn_get(space: &Namespace, to: SocketAddr, flags: &[String]) -> Result<Child, Failed> {
    let mut command = Command::new(PLAIT);
    command.args(["get", &to.to_string(), "--path-memory", "off"]).args(flags);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(space.within(|| command.spawn())??)
}

/// Runs `plait get` in the client's namespace, with a line on standard input that stays open unless `ends` is
/// set.
fn get(space: &Namespace, to: SocketAddr, flags: &[String], ends: bool) -> Result<Output, Failed> {
    let mut child = spawn_get(space, to, flags)?;
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(&kernel::pattern(400_000));
    let open = if ends { None } else { Some(stdin) };
    let output = child.wait_with_output()?;
    drop(open);
    Ok(output)
}

/// If a server resets or the reader of standard output closes it, the exit code and a line report it. The
/// program does not hang.
fn broken() -> Result<(), Failed> {
    let (bed, at, from) = bed(Family::V4, 100)?;
    let listener = bed.server.within(|| -> io::Result<Socket> {
        let listener = kernel::socket(at.ip(), Speaks::Mptcp)?;
        listener.bind(&at.into())?;
        listener.listen(8)?;
        Ok(listener)
    })??;
    let resets = thread::spawn(move || -> io::Result<Socket> {
        for _ in 0..2 {
            let (stream, _) = kernel::persist(|| listener.accept())?;
            let mut stream = stream;
            stream.read_exact(&mut [0; 1000])?;
            stream.set_linger(Some(Duration::ZERO))?;
        }
        Ok(listener)
    });
    // A reset ends the connection whether or not standard input has ended.
    for ends in [true, false] {
        let output = get(&bed.client, at, &from, ends)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("the peer has reset the connection"), "{said}");
        assert!(said.contains("acknowledged"), "{said}");
    }
    let listener = resets.join().unwrap()?;
    // The service sends without end and reads only the first line.
    let endless = thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = kernel::persist(|| listener.accept())?;
        stream.read_exact(&mut [0; 6])?;
        while stream.write_all(&kernel::pattern(100_000)).is_ok() {}
        Ok(())
    });
    let mut child = Running(spawn_get(&bed.client, at, &from)?);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hello\n")?;
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.fill_buf()?;
    drop(reader);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said)?;
    assert_eq!(child.wait()?.code(), Some(4), "{said}");
    assert!(said.contains("stdout is closed; stdin had not ended; 6 bytes of it"), "{said}");
    drop(stdin);
    endless.join().unwrap()?;
    net::until("the end of the device", || {
        bed.client.within(|| !net::said("ip -o link").contains("plait0")).unwrap()
    });
    Ok(())
}
