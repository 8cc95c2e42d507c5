//! A line between us and the server that a test can cut, hold, slow down or take away.
//!
//! It sees whole packets although they are encrypted: of the ciphers in use (AES-GCM) the length of a packet is readable. A packet
//! that is cut off is not passed on, and its connection is gone for both sides.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// Whose packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Ours: a request that does not arrive.
    Client,
    /// The server's: an answer that does not arrive, to a request that was carried out.
    Server,
}

/// What happens to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    Pass,
    /// The n-th packet of a side from now on ends its connection; then follows something else.
    Cut {
        side: Side,
        at: u64,
        then: After,
    },
    /// The same for the n-th byte, of either side.
    CutByte {
        at: u64,
    },
    /// Our n-th packet and all after it on its connection wait until they are let go. Other connections pass.
    Hold {
        at: u64,
    },
    /// Nobody gets through, and who was through is cut off.
    Refuse,
    /// So many bytes a second, each way.
    Throttle {
        bytes_per_s: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Pass,
    Refuse,
}

struct Control {
    plan: Mutex<Plan>,
    refusing: watch::Sender<bool>,
    release: Notify,
    /// Connections whose both ends are done.
    ended: watch::Sender<u64>,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    control: Arc<Control>,
}

/// What becomes of a packet.
enum Fate {
    Pass,
    Cut,
    Hold,
    /// After a while.
    Late(Duration),
}

impl Control {
    fn fate(&self, side: Side, packet_bytes: u64) -> Fate {
        let mut plan = self.plan.lock().unwrap();
        match &mut *plan {
            Plan::Pass => Fate::Pass,
            Plan::Refuse => Fate::Cut,
            Plan::Cut { side: whose, at, then } if *whose == side => {
                *at -= 1;
                if *at > 0 {
                    return Fate::Pass;
                }
                let then = *then;
                *plan = if then == After::Pass { Plan::Pass } else { Plan::Refuse };
                self.refusing.send_replace(then == After::Refuse);
                Fate::Cut
            }
            Plan::CutByte { at } if *at < packet_bytes => {
                *plan = Plan::Pass;
                Fate::Cut
            }
            Plan::CutByte { at } => {
                *at -= packet_bytes;
                Fate::Pass
            }
            Plan::Hold { at } if side == Side::Client => {
                *at -= 1;
                if *at > 0 {
                    return Fate::Pass;
                }
                *plan = Plan::Pass;
                Fate::Hold
            }
            Plan::Throttle { bytes_per_s } => {
                Fate::Late(Duration::from_secs(1) * u32::try_from(packet_bytes).unwrap() / *bytes_per_s)
            }
            Plan::Cut { .. } | Plan::Hold { .. } => Fate::Pass,
        }
    }
}

impl Proxy {
    /// A line to a port of this machine.
    pub(crate) async fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let control = Arc::new(Control {
            plan: Mutex::new(Plan::Pass),
            refusing: watch::Sender::new(false),
            release: Notify::new(),
            ended: watch::Sender::new(0),
        });
        tokio::spawn({
            let control = Arc::clone(&control);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(connection(Arc::clone(&control), client, target));
                }
            }
        });
        Self { port, control }
    }

    /// From now on.
    pub(crate) fn plan(&self, plan: Plan) {
        self.control.refusing.send_replace(plan == Plan::Refuse);
        *self.control.plan.lock().unwrap() = plan;
    }

    /// Whether what was planned has happened.
    pub(crate) fn has_struck(&self) -> bool {
        matches!(*self.control.plan.lock().unwrap(), Plan::Pass | Plan::Refuse)
    }

    /// How many connections are over.
    pub(crate) fn ended(&self) -> u64 {
        *self.control.ended.borrow()
    }

    /// Lets go what was held, and waits until another connection than those before is over.
    pub(crate) async fn release(&self) {
        let before = self.ended();
        self.control.release.notify_one();
        self.control.ended.subscribe().wait_for(|ended| *ended > before).await.unwrap();
    }
}

async fn connection(control: Arc<Control>, client: TcpStream, target: u16) {
    let mut refusing = control.refusing.subscribe();
    let server = TcpStream::connect(("127.0.0.1", target)).await;
    let is_refused = *refusing.borrow_and_update();
    if let (Ok(server), false) = (server, is_refused) {
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        let requests = pump(Side::Client, &control, (from_client, to_server));
        let answers = pump(Side::Server, &control, (from_server, to_client));
        tokio::select! {
            // The server's end is the end: until then it works on what it got.
            _ = answers => {}
            Err(Ended::Cut) = requests => {}
            _ = refusing.wait_for(|refusing| *refusing) => {}
        }
    }
    control.ended.send_modify(|ended| *ended += 1);
}

#[derive(Debug)]
enum Ended {
    Cut,
    Closed,
}

impl From<std::io::Error> for Ended {
    fn from(_: std::io::Error) -> Self {
        Self::Closed
    }
}

async fn pump(
    side: Side,
    control: &Control,
    (mut from, mut to): (OwnedReadHalf, OwnedWriteHalf),
) -> Result<(), Ended> {
    let mut greeting = Vec::new();
    while greeting.last() != Some(&b'\n') {
        greeting.push(from.read_u8().await?);
    }
    to.write_all(&greeting).await?;
    let mut is_encrypted = false;
    loop {
        let length = from.read_u32().await?;
        let tag_bytes = if is_encrypted { 16 } else { 0 };
        let mut packet = length.to_be_bytes().to_vec();
        packet.resize(4 + length as usize + tag_bytes, 0);
        from.read_exact(&mut packet[4..]).await?;
        // The message that says: from here on with keys.
        is_encrypted = is_encrypted || packet[5] == 21;
        match control.fate(side, packet.len() as u64) {
            Fate::Pass => {}
            Fate::Cut => return Err(Ended::Cut),
            Fate::Hold => control.release.notified().await,
            // waits on purpose: this is what a slow line does
            Fate::Late(after) => tokio::time::sleep(after).await,
        }
        to.write_all(&packet).await?;
    }
}
