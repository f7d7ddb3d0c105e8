//! An endpoint of noq with one connection.

use crate::adapter::Adapter;
use crate::world::{MTU, PORT, SERVER, WINDOW};
use bytes::BytesMut;
use noq_proto::congestion::ControllerFactory;
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, FourTuple,
    ServerConfig, Transmit, TransportConfig, VarInt,
};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

const NAME: &str = "localhost";

/// A certificate of the server. All of its fields have the same size in each run.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Identity {
    pub(crate) fn new() -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = CertificateParams::new([NAME.to_owned()])?;
        params.serial_number = Some(SerialNumber::from(1));
        Ok(Identity { certificate: params.self_signed(&key)?.into(), key })
    }
}

pub(crate) struct Host {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    accepts: Option<Arc<ServerConfig>>,
    /// Answers of the endpoint itself. They are dropped, because both ends have the same version and need no retry.
    responses: Vec<u8>,
}

fn endpoint(seed: u64, end: u8, accepts: Option<Arc<ServerConfig>>) -> Endpoint {
    let mut config = EndpointConfig::default();
    let mut bytes = [end; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    config.rng_seed(Some(bytes));
    Endpoint::new(Arc::new(config), accepts, false)
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_multipath_paths(2)
        .initial_mtu(MTU)
        .mtu_discovery_config(None)
        .stream_receive_window(VarInt::from_u32(WINDOW));
    transport
}

impl Host {
    pub(crate) fn client(
        identity: &Identity,
        seed: u64,
        now: Instant,
    ) -> Result<Host, Box<dyn Error>> {
        let mut roots = RootCertStore::empty();
        roots.add(identity.certificate.clone())?;
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        config.transport_config(Arc::new(transport()));
        let mut endpoint = endpoint(seed, 0, None);
        let connection = endpoint.connect(now, config, SocketAddr::new(SERVER, PORT), NAME)?;
        Ok(Host { endpoint, connection: Some(connection), accepts: None, responses: Vec::new() })
    }

    pub(crate) fn server(
        identity: &Identity,
        seed: u64,
        controllers: Arc<dyn ControllerFactory + Send + Sync>,
    ) -> Result<Host, Box<dyn Error>> {
        let key = rustls::pki_types::PrivateKeyDer::try_from(identity.key.serialize_der())?;
        let mut config = ServerConfig::with_single_cert(vec![identity.certificate.clone()], key)?;
        let mut transport = transport();
        transport.congestion_controller_factory(controllers);
        config.transport_config(Arc::new(transport));
        let accepts = Some(Arc::new(config));
        let endpoint = endpoint(seed, 1, accepts.clone());
        Ok(Host { endpoint, connection: None, accepts, responses: Vec::new() })
    }

    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    pub(crate) fn timeout(&mut self) -> Option<Instant> {
        self.connection()?.poll_timeout()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timeout().is_some_and(|timeout| timeout <= now)
            && let Some(connection) = self.connection()
        {
            connection.handle_timeout(now);
        }
    }

    /// Takes in a datagram. A server accepts one connection.
    pub(crate) fn receive(&mut self, now: Instant, tuple: FourTuple, bytes: BytesMut) {
        self.responses.clear();
        let event = self.endpoint.handle(now, tuple, None, bytes, &mut self.responses);
        match (event, &mut self.connection) {
            (Some(DatagramEvent::ConnectionEvent(_, event)), Some((_, connection))) => {
                connection.handle_event(event);
            }
            (Some(DatagramEvent::NewConnection(incoming)), None) => {
                let accepts = self.accepts.clone();
                let accepted = self.endpoint.accept(incoming, now, &mut self.responses, accepts);
                self.connection = accepted.ok();
            }
            (Some(DatagramEvent::NewConnection(incoming)), Some(_)) => {
                self.endpoint.ignore(incoming);
            }
            _ => {}
        }
    }

    /// Exchanges events between the endpoint and the connection, and drops those of the application.
    pub(crate) fn handle_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while connection.poll().is_some() {}
    }

    /// Returns the next datagram, whose bytes are in `buffer`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        adapter: Option<&mut Adapter>,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let connection = self.connection()?;
        match adapter {
            Some(adapter) => adapter.poll_transmit(connection, now, buffer),
            None => connection.poll_transmit(now, NonZeroUsize::MIN, buffer),
        }
    }
}
