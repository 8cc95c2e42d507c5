//! Where Redis is: one server, a Sentinel that knows the server, or a Cluster.
//!
//! Guarantees: a wrong address is found when it is read; connecting and each answer have an end, which is ours and not
//! the client's default. Does not do: repeat anything; whoever connects tries again.

use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::{MultiplexedConnection, PubSubStream};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo, RedisConnectionInfo, RedisError, RedisResult,
    TlsMode, Value,
};

/// Longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Longest wait for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It does not begin with a word we know.
    #[error(
        "begin the address with redis://, rediss://, redis+unix://, redis-sentinel://, rediss-sentinel://, redis-cluster:// or rediss-cluster://"
    )]
    Scheme,
    /// It names nobody.
    #[error("name at least one host: redis-cluster://host:6379,other:6379")]
    NoHost,
    /// A Sentinel looks after several services.
    #[error("name the service after the hosts: redis-sentinel://host:26379,other:26379/service")]
    NoService,
    /// The client does not understand it.
    #[error("the address of Redis could not be read")]
    Unreadable(#[source] RedisError),
}

/// Where Redis is.
pub(super) enum Place {
    One(Client),
    Sentinel { sentinels: Vec<redis::ConnectionInfo>, service: String, server: SentinelNodeConnectionInfo },
    Cluster { cluster: Box<ClusterClient>, nodes: Vec<Client> },
}

/// A connection that takes commands.
#[derive(Clone)]
pub(super) enum Commands {
    One(MultiplexedConnection),
    Many(ClusterConnection),
}

impl Place {
    /// Reads an address. `redis-sentinel://user:password@host:26379,other:26379/service/0` names Sentinels, the service,
    /// and the database; user and password are those of the servers. `redis-cluster://host:6379,other:6379` names nodes.
    pub(super) fn read(address: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = address.split_once("://").ok_or(AddressError::Scheme)?;
        let several = Several::read(rest);
        match scheme {
            "redis" | "rediss" | "redis+unix" => {
                Client::open(address).map(Self::One).map_err(AddressError::Unreadable)
            }
            "redis-sentinel" => several.sentinel("redis"),
            "rediss-sentinel" => several.sentinel("rediss"),
            "redis-cluster" => several.cluster("redis"),
            "rediss-cluster" => several.cluster("rediss"),
            _ => Err(AddressError::Scheme),
        }
    }

    /// Listens to a channel. In a Cluster every node hears what is published on any of them.
    pub(super) async fn subscribe(&self, channel: &str) -> RedisResult<PubSubStream> {
        let mut last = None;
        for client in within(CONNECT_WITHIN, self.clients()).await? {
            let subscribing = async {
                let mut connection = client.get_async_pubsub().await?;
                connection.subscribe(channel).await?;
                Ok(connection.into_on_message())
            };
            match within(CONNECT_WITHIN, subscribing).await {
                Ok(messages) => return Ok(messages),
                Err(cause) => last = Some(cause),
            }
        }
        Err(last.unwrap_or_else(timed_out))
    }

    /// Connects for commands.
    pub(super) async fn commands(&self) -> RedisResult<Commands> {
        within(CONNECT_WITHIN, async {
            if let Self::Cluster { cluster, .. } = self {
                return cluster.get_async_connection().await.map(Commands::Many);
            }
            let limits = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECT_WITHIN))
                .set_response_timeout(Some(ANSWER_WITHIN));
            let mut clients = self.clients().await?;
            let client = clients.pop().ok_or_else(timed_out)?;
            client.get_multiplexed_async_connection_with_config(&limits).await.map(Commands::One)
        })
        .await
    }

    async fn clients(&self) -> RedisResult<Vec<Client>> {
        match self {
            Self::One(client) => Ok(vec![client.clone()]),
            Self::Sentinel { sentinels, service, server } => {
                // Asked each time: after a failover another server is the one that takes writes.
                let server = Some(server.clone());
                let mut sentinel =
                    SentinelClient::build(sentinels.clone(), service, server, SentinelServerType::Master)?;
                Ok(vec![sentinel.async_get_client().await?])
            }
            Self::Cluster { nodes, .. } => Ok(nodes.clone()),
        }
    }
}

impl Commands {
    /// Sends all, side by side. `Err` if the connection is of no use any more; a server that refuses single commands is.
    pub(super) async fn send(&mut self, commands: Vec<Cmd>) -> RedisResult<()> {
        let answers: Vec<RedisResult<Value>> = match self {
            Self::One(connection) => {
                let mut pipeline = redis::Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command);
                }
                pipeline.ignore_errors().query_async(connection).await?
            }
            Self::Many(cluster) => {
                join_all(commands.into_iter().map(|command| {
                    let mut cluster = cluster.clone();
                    async move { command.query_async(&mut cluster).await }
                }))
                .await
            }
        };
        answers.into_iter().filter_map(Result::err).find(is_of_no_use).map_or(Ok(()), Err)
    }

    /// Asks one thing.
    pub(super) async fn ask<T: redis::FromRedisValue>(&mut self, command: Cmd) -> RedisResult<T> {
        match self {
            Self::One(connection) => command.query_async(connection).await,
            Self::Many(cluster) => command.query_async(cluster).await,
        }
    }
}

/// Full, or not allowed: another connection would not help. Anything else may be a server that lost its place.
fn is_of_no_use(cause: &RedisError) -> bool {
    !matches!(cause.code(), Some("ERR" | "OOM" | "WRONGTYPE" | "NOPERM" | "MISCONF"))
}

async fn within<T>(limit: Duration, work: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(timed_out()))
}

fn timed_out() -> RedisError {
    RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut))
}

/// An address with several hosts, which no reader of addresses knows.
struct Several<'a> {
    credentials: Option<&'a str>,
    hosts: Vec<&'a str>,
    path: Vec<&'a str>,
}

impl<'a> Several<'a> {
    fn read(rest: &'a str) -> Self {
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(credentials), rest),
            None => (None, rest),
        };
        let mut parts = rest.split('/');
        let hosts = parts.next().unwrap_or_default().split(',').filter(|host| !host.is_empty()).collect();
        Self { credentials, hosts, path: parts.filter(|part| !part.is_empty()).collect() }
    }

    fn sentinel(&self, scheme: &str) -> Result<Place, AddressError> {
        let (service, database) = match self.path.as_slice() {
            [service] => (*service, "0"),
            [service, database] => (*service, *database),
            _ => return Err(AddressError::NoService),
        };
        let sentinels = self.infos(scheme, None, "0")?;
        let first = self.infos(scheme, self.credentials, database)?.into_iter().next();
        let settings: Option<RedisConnectionInfo> = first.map(|info| info.redis_settings().clone());
        let mut server = SentinelNodeConnectionInfo::default();
        if let Some(settings) = settings {
            server = server.set_redis_connection_info(settings);
        }
        if scheme == "rediss" {
            server = server.set_tls_mode(TlsMode::Secure);
        }
        Ok(Place::Sentinel { sentinels, service: service.to_owned(), server })
    }

    fn cluster(&self, scheme: &str) -> Result<Place, AddressError> {
        let infos = self.infos(scheme, self.credentials, "0")?;
        let nodes: RedisResult<Vec<Client>> = infos.iter().cloned().map(Client::open).collect();
        let cluster = ClusterClient::builder(infos)
            .retries(1)
            .min_retry_wait(50)
            .max_retry_wait(200)
            .connection_timeout(CONNECT_WITHIN)
            .response_timeout(ANSWER_WITHIN)
            .overall_response_timeout(Some(2 * ANSWER_WITHIN))
            .build();
        Ok(Place::Cluster {
            cluster: Box::new(cluster.map_err(AddressError::Unreadable)?),
            nodes: nodes.map_err(AddressError::Unreadable)?,
        })
    }

    fn infos(
        &self,
        scheme: &str,
        credentials: Option<&str>,
        database: &str,
    ) -> Result<Vec<redis::ConnectionInfo>, AddressError> {
        if self.hosts.is_empty() {
            return Err(AddressError::NoHost);
        }
        let credentials = credentials.map(|credentials| format!("{credentials}@")).unwrap_or_default();
        let infos: RedisResult<Vec<_>> = self
            .hosts
            .iter()
            .map(|host| format!("{scheme}://{credentials}{host}/{database}").into_connection_info())
            .collect();
        infos.map_err(AddressError::Unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_place_is_read() {
        assert!(matches!(Place::read("redis://localhost").unwrap(), Place::One(_)));
        let sentinel = Place::read("redis-sentinel://user:pw@a:26379,b:26379/main/3").unwrap();
        assert!(
            matches!(sentinel, Place::Sentinel { sentinels, service, .. } if sentinels.len() == 2 && service == "main")
        );
        let cluster = Place::read("redis-cluster://a:6379,b:6379").unwrap();
        assert!(matches!(cluster, Place::Cluster { nodes, .. } if nodes.len() == 2));
    }

    #[test]
    fn a_wrong_address_is_found_at_once() {
        assert!(matches!(Place::read("localhost:6379"), Err(AddressError::Scheme)));
        assert!(matches!(Place::read("http://localhost"), Err(AddressError::Scheme)));
        assert!(matches!(Place::read("redis-sentinel://a:26379"), Err(AddressError::NoService)));
        assert!(matches!(Place::read("redis-cluster://"), Err(AddressError::NoHost)));
    }
}
