//! Calls to a Hive Metastore: Thrift's binary protocol over TCP, one connection for a call.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType,
    TOutputProtocol,
};
use thrift::transport::{
    TBufferedReadTransport, TBufferedWriteTransport, TFramedReadTransport, TFramedWriteTransport,
};
use url::Url;

use super::value::{Fields, Value};
use crate::error::{CatalogError, Result};
use crate::secrets::Masked;
use crate::storage::StoreSettings;

/// The port of a metastore that names none.
const DEFAULT_PORT: u16 = 9083;

/// Where a Hive Metastore is.
#[derive(Clone)]
pub(crate) struct HiveConfig {
    pub(super) catalog: String,
    /// Servers that know the same, tried in turn.
    servers: Vec<(String, u16)>,
    framed: bool,
    pub(super) warehouse: Option<String>,
    pub(super) properties: BTreeMap<String, String>,
}

impl fmt::Debug for HiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HiveConfig")
            .field("catalog", &self.catalog)
            .field("properties", &Masked(&self.properties))
            .finish_non_exhaustive()
    }
}

impl HiveConfig {
    /// `thrift://host:port`, several of them with commas between.
    pub(crate) fn new(
        catalog: &str,
        uri: &str,
        properties: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let mut servers = Vec::new();
        for uri in uri.split(',').map(str::trim).filter(|uri| !uri.is_empty()) {
            let wrong =
                || format!("the uri of a Hive Metastore is 'thrift://host:port', not '{uri}'");
            let url = Url::parse(uri).map_err(|_| wrong())?;
            let host = url
                .host_str()
                .filter(|_| url.scheme() == "thrift")
                .ok_or_else(wrong)?;
            servers.push((host.to_string(), url.port().unwrap_or(DEFAULT_PORT)));
        }
        for key in ["hive.metastore.use.SSL", "hive.metastore.sasl.enabled"] {
            if properties
                .get(key)
                .is_some_and(|value| value.eq_ignore_ascii_case("true"))
            {
                return Err(format!("'{key}' is not supported"));
            }
        }
        let framed = properties
            .get("hive.metastore.thrift.framed.transport.enabled")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Self {
            catalog: catalog.to_string(),
            servers,
            framed,
            warehouse: properties.get("warehouse").cloned(),
            properties: properties.clone(),
        })
    }

    fn shown(&self) -> String {
        let servers = self.servers.iter();
        let shown: Vec<String> = servers
            .map(|(host, port)| format!("thrift://{host}:{port}"))
            .collect();
        shown.join(",")
    }
}

/// What a metastore answered that has not failed.
#[derive(Debug)]
pub(super) enum Answer {
    /// The value, if the call has one.
    Ok(Option<Value>),
    /// It threw: the number that the exception has in the call's definition, and its message.
    Thrown(i16, String),
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing was sent.
    NotSent(String),
    /// It was sent, and what became of it is not known.
    Lost(String),
    /// The server did not take the call, or does not know it.
    Refused(String),
}

#[derive(Debug)]
pub(super) struct HiveClient {
    pub(super) config: HiveConfig,
    settings: StoreSettings,
}

impl HiveClient {
    pub(super) fn new(config: HiveConfig, settings: StoreSettings) -> Self {
        Self { config, settings }
    }

    pub(super) fn refused(&self, reason: String) -> CatalogError {
        CatalogError::Refused {
            catalog: self.config.catalog.clone(),
            uri: self.config.shown(),
            reason,
        }
    }

    pub(super) fn failed(&self, failure: Failure) -> CatalogError {
        match failure {
            Failure::Refused(reason) => self.refused(reason),
            Failure::NotSent(reason) | Failure::Lost(reason) => CatalogError::Unreachable {
                catalog: self.config.catalog.clone(),
                uri: self.config.shown(),
                reason,
            },
        }
    }

    /// Calls a method. One that was not sent is tried on the next server.
    pub(super) async fn call(
        self: &Arc<Self>,
        method: &'static str,
        arguments: Vec<Value>,
    ) -> Result<Answer, Failure> {
        let client = Arc::clone(self);
        let called = tokio::task::spawn_blocking(move || {
            let arguments = Fields::of((1..).zip(arguments));
            let mut failure = Failure::NotSent("it has no address".to_string());
            for (host, port) in &client.config.servers {
                match client.call_server(host, *port, method, &arguments) {
                    Err(Failure::NotSent(reason)) => failure = Failure::NotSent(reason),
                    answered => return answered,
                }
            }
            Err(failure)
        });
        called
            .await
            .unwrap_or_else(|_| Err(Failure::Lost("the runtime is shutting down".to_string())))
    }

    fn call_server(
        &self,
        host: &str,
        port: u16,
        method: &str,
        arguments: &Fields,
    ) -> Result<Answer, Failure> {
        let not_sent = |error: std::io::Error| Failure::NotSent(error.to_string());
        let host = host.trim_matches(['[', ']']);
        let mut connected = Err(std::io::Error::other("the host has no address"));
        for address in (host, port).to_socket_addrs().map_err(not_sent)? {
            connected = TcpStream::connect_timeout(&address, self.settings.connect_timeout);
            if connected.is_ok() {
                break;
            }
        }
        let stream = connected.map_err(not_sent)?;
        let timeout = Some(self.settings.request_timeout);
        stream
            .set_read_timeout(timeout)
            .and_then(|()| stream.set_write_timeout(timeout))
            .and_then(|()| stream.set_nodelay(true))
            .map_err(not_sent)?;
        let answer = match self.config.framed {
            true => talk(
                TBinaryInputProtocol::new(TFramedReadTransport::new(&stream), false),
                TBinaryOutputProtocol::new(TFramedWriteTransport::new(&stream), true),
                method,
                arguments,
            ),
            false => talk(
                TBinaryInputProtocol::new(TBufferedReadTransport::new(&stream), false),
                TBinaryOutputProtocol::new(TBufferedWriteTransport::new(&stream), true),
                method,
                arguments,
            ),
        };
        answer.map_err(|error| match error {
            thrift::Error::Application(error) => Failure::Refused(error.message),
            other => Failure::Lost(format!("{method}: {}", reason(&other))),
        })
    }
}

fn reason(error: &thrift::Error) -> String {
    match error {
        thrift::Error::Transport(error) => error.message.clone(),
        thrift::Error::Protocol(error) => format!("its answer makes no sense: {}", error.message),
        other => other.to_string(),
    }
}

fn talk<R: Read, W: Write>(
    mut input: TBinaryInputProtocol<R>,
    mut output: TBinaryOutputProtocol<W>,
    method: &str,
    arguments: &Fields,
) -> thrift::Result<Answer>
where
    TBinaryInputProtocol<R>: TInputProtocol,
    TBinaryOutputProtocol<W>: TOutputProtocol,
{
    const SEQUENCE: i32 = 1;
    output.write_message_begin(&TMessageIdentifier::new(
        method,
        TMessageType::Call,
        SEQUENCE,
    ))?;
    arguments.write(&mut output)?;
    output.write_message_end()?;
    output.flush()?;
    let message = input.read_message_begin()?;
    if message.message_type == TMessageType::Exception {
        let error = thrift::Error::read_application_error_from_in_protocol(&mut input)?;
        return Err(thrift::Error::Application(error));
    }
    thrift::protocol::verify_expected_sequence_number(SEQUENCE, message.sequence_number)?;
    thrift::protocol::verify_expected_message_type(TMessageType::Reply, message.message_type)?;
    let mut result = Fields::read(&mut input)?.0;
    input.read_message_end()?;
    if let Some(success) = result.remove(&0) {
        return Ok(Answer::Ok(Some(success)));
    }
    match result.into_iter().next() {
        None => Ok(Answer::Ok(None)),
        Some((number, Value::Struct(exception))) => {
            let message = exception.text(1).unwrap_or_default();
            Ok(Answer::Thrown(number, message))
        }
        Some((number, _)) => Ok(Answer::Thrown(number, String::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_metastores() {
        let config = |uri: &str, pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()));
            HiveConfig::new("h", uri, &pairs.collect())
        };
        assert_eq!(
            config("thrift://a:9084, thrift://b", &[]).unwrap().shown(),
            "thrift://a:9084,thrift://b:9083"
        );
        for uri in ["a:9083", "http://a:9083", "thrift://"] {
            assert!(
                config(uri, &[]).unwrap_err().contains("thrift://host:port"),
                "{uri}"
            );
        }
        let ssl = config("thrift://a", &[("hive.metastore.use.SSL", "true")]);
        assert!(
            ssl.unwrap_err()
                .contains("'hive.metastore.use.SSL' is not supported")
        );
    }
}
