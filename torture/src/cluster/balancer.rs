//! A balancer in front of the instances, as simple as real ones are.
//!
//! Each request goes to an instance by chance, so a repeat of the Document Server usually arrives elsewhere. An instance that does not
//! take a connection, or whose `/readyz` does not say 200, is left out for a while, and only after that was seen; if nobody is
//! left, anybody is tried. A GET that was cut off before its first byte is asked elsewhere; a POST is not, as the how-to
//! demands: its repeat is the sender's business.
//!
//! Guarantees: adds nothing to an answer and keeps nothing back. Does not do: TLS, bodies, more than one request per connection.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::dice::Dice;

/// How long somebody who refused a connection is left out.
const LEFT_OUT: Duration = Duration::from_millis(300);
const CONNECTING: Duration = Duration::from_millis(500);
/// A `/readyz` that takes longer counts as no.
const PROBING: Duration = Duration::from_secs(1);
/// Longer than the head of any request here.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A balancer.
pub(crate) struct Balancer {
    pub(crate) url: String,
    seats: Arc<Vec<Seat>>,
    tasks: Vec<JoinHandle<()>>,
}

struct Seat {
    address: SocketAddr,
    is_ready: AtomicBool,
    left_out_until: Mutex<Instant>,
}

impl Seat {
    fn leave_out(&self) {
        let until = Instant::now() + LEFT_OUT;
        *self.left_out_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    fn is_wanted(&self) -> bool {
        let until = *self.left_out_until.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_ready.load(Ordering::SeqCst) && until <= Instant::now()
    }
}

impl Balancer {
    /// Stands before the instances and asks each so often whether it is ready.
    pub(crate) async fn before(ports: &[u16], (look_every, dice): (Duration, Dice)) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let seat = |port: &u16| Seat {
            address: SocketAddr::from(([127, 0, 0, 1], *port)),
            is_ready: AtomicBool::new(true),
            left_out_until: Mutex::new(Instant::now()),
        };
        let seats: Arc<Vec<Seat>> = Arc::new(ports.iter().map(seat).collect());
        let mut tasks = vec![tokio::spawn(accept(listener, Arc::clone(&seats), dice))];
        for place in 0..seats.len() {
            tasks.push(tokio::spawn(probe(Arc::clone(&seats), place, look_every)));
        }
        Ok(Self { url, seats, tasks })
    }

    /// Whether it would send something to this instance.
    pub(crate) fn is_wanted(&self, place: usize) -> bool {
        self.seats.get(place).is_some_and(Seat::is_wanted)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn accept(listener: TcpListener, seats: Arc<Vec<Seat>>, mut dice: Dice) {
    while let Ok((client, _)) = listener.accept().await {
        let places = order(&seats, &mut dice);
        tokio::spawn(serve(client, Arc::clone(&seats), places));
    }
}

/// Everybody, by chance, those who are wanted first.
fn order(seats: &[Seat], dice: &mut Dice) -> Vec<usize> {
    let mut places: Vec<(bool, u64, usize)> = seats
        .iter()
        .enumerate()
        .map(|(place, seat)| (!seat.is_wanted(), dice.number(0..u64::MAX), place))
        .collect();
    places.sort_unstable();
    places.into_iter().map(|(.., place)| place).collect()
}

async fn serve(mut client: TcpStream, seats: Arc<Vec<Seat>>, places: Vec<usize>) {
    let Ok(head) = read_head(&mut client).await else { return };
    let is_repeatable = head.starts_with(b"GET ");
    for place in places {
        let seat = &seats[place];
        let Ok(Ok(mut instance)) = timeout(CONNECTING, TcpStream::connect(seat.address)).await else {
            seat.leave_out();
            continue;
        };
        let _ = (client.set_nodelay(true), instance.set_nodelay(true));
        if !is_repeatable {
            let _ = pass_on(&mut client, &mut instance, &head).await;
            return;
        }
        let mut first = vec![0; 16 * 1024];
        match ask(&mut instance, &head, &mut first).await {
            Ok(count @ 1..) => {
                let _ = pass_on(&mut instance, &mut client, &first[..count]).await;
                return;
            }
            _ => seat.leave_out(),
        }
    }
}

/// The head of a request, and what came with it; each request is balanced by itself.
async fn read_head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let end = loop {
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if client.read_buf(&mut head).await? == 0 || head.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let is_said = String::from_utf8_lossy(&head[..end]).to_ascii_lowercase().contains("\r\nconnection:");
    if !is_said {
        head.splice(end..end, *b"\r\nConnection: close");
    }
    Ok(head)
}

async fn ask(instance: &mut TcpStream, head: &[u8], answer: &mut [u8]) -> io::Result<usize> {
    instance.write_all(head).await?;
    instance.read(answer).await
}

/// Gives on what was read from one side, then everything in both directions.
async fn pass_on(from: &mut TcpStream, to: &mut TcpStream, read: &[u8]) -> io::Result<()> {
    to.write_all(read).await?;
    tokio::io::copy_bidirectional(from, to).await.map(drop)
}

async fn probe(seats: Arc<Vec<Seat>>, place: usize, every: Duration) {
    let seat = &seats[place];
    loop {
        let is_ready =
            timeout(PROBING, says_ready(seat.address)).await.is_ok_and(|said| said.is_ok_and(|yes| yes));
        seat.is_ready.store(is_ready, Ordering::SeqCst);
        tokio::time::sleep(every).await;
    }
}

async fn says_ready(address: SocketAddr) -> io::Result<bool> {
    let mut instance = TcpStream::connect(address).await?;
    instance.write_all(b"GET /readyz HTTP/1.1\r\nHost: balancer\r\nConnection: close\r\n\r\n").await?;
    let mut said = [0; 12];
    instance.read_exact(&mut said).await?;
    Ok(said.ends_with(b" 200"))
}
