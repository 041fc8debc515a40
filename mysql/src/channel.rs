//! Packets over a socket, with bounds on memory and time.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::error::ConnectionError;
use crate::wire::packet::{PacketDecoder, PacketEncoder};

/// What a client may send ahead while its statement runs. Past it, its disconnect is noticed by
/// writing only.
const READ_AHEAD_BYTES: usize = 64 * 1024;

/// The most that is read of a payload over the limit, to tell the client; MySQL has no larger ones.
const SKIPPED_BYTES: usize = 1 << 30;

/// One client's socket.
pub(crate) struct Channel {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    decoder: PacketDecoder,
    encoder: PacketEncoder,
    /// The connection's end, asked for by someone else.
    killed: CancellationToken,
    /// The server's end.
    shutdown: CancellationToken,
    /// A packet may have been sent in part: nothing can follow it.
    torn: bool,
    write_timeout: Duration,
    send_buffer: usize,
}

impl Channel {
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        max_payload_bytes: usize,
        send_buffer_bytes: usize,
        write_timeout: Duration,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            decoder: PacketDecoder::new(max_payload_bytes),
            encoder: PacketEncoder::default(),
            killed: CancellationToken::new(),
            shutdown,
            torn: false,
            write_timeout,
            send_buffer: send_buffer_bytes,
        }
    }

    pub fn set_killed(&mut self, killed: CancellationToken) {
        self.killed = killed;
    }

    /// Sets the most bytes that a payload may have from now on.
    pub fn set_max_payload(&mut self, bytes: usize) {
        self.decoder.set_limits(bytes, SKIPPED_BYTES);
    }

    pub fn set_write_timeout(&mut self, time: Duration) {
        self.write_timeout = time;
    }

    /// Waits for the first packet of the next exchange.
    pub async fn read_command(&mut self, idle: Duration) -> Result<Bytes, ConnectionError> {
        self.decoder.expect_sequence(0);
        let (killed, shutdown) = (self.killed.clone(), self.shutdown.clone());
        let payload = tokio::select! {
            payload = timeout(idle, self.read_payload()) => payload,
            end = ended(&killed, &shutdown) => return Err(match end {
                ConnectionError::Killed => ConnectionError::KilledWhileIdle,
                end => end,
            }),
        };
        self.encoder.set_sequence(self.decoder.next_sequence());
        payload.map_err(|_| ConnectionError::Idle(idle))?
    }

    /// Waits for the client's answer within an exchange.
    pub async fn read_answer(&mut self) -> Result<Bytes, ConnectionError> {
        self.decoder.expect_sequence(self.encoder.sequence());
        let payload = self.read_payload().await;
        self.encoder.set_sequence(self.decoder.next_sequence());
        payload
    }

    async fn read_payload(&mut self) -> Result<Bytes, ConnectionError> {
        loop {
            if let Some(payload) = self.decoder.next_payload()? {
                return Ok(payload);
            }
            if self.read_some().await? == 0 {
                return Err(ConnectionError::ClientGone);
            }
        }
    }

    async fn read_some(&mut self) -> Result<usize, ConnectionError> {
        let buffer = self.decoder.buffer();
        buffer.reserve(16 * 1024);
        Ok(self.reader.read_buf(buffer).await?)
    }

    /// Runs `work` unless the client goes away or the connection is killed; `work` is then dropped.
    pub async fn watch<F: Future>(&mut self, work: F) -> Result<F::Output, ConnectionError> {
        let (killed, shutdown) = (self.killed.clone(), self.shutdown.clone());
        tokio::select! {
            biased;
            output = work => Ok(output),
            end = ended(&killed, &shutdown) => Err(end),
            gone = self.gone() => Err(gone),
        }
    }

    /// Waits until the client has closed its side. What it sends ahead is kept.
    async fn gone(&mut self) -> ConnectionError {
        while self.decoder.buffered() < READ_AHEAD_BYTES {
            match self.read_some().await {
                Ok(0) => return ConnectionError::ClientGone,
                Ok(_) => {}
                Err(error) => return error,
            }
        }
        std::future::pending().await
    }

    /// The packets to be sent. Send them with [`Self::flush`], or [`Self::flush_if_full`] while
    /// there are more to come.
    pub fn packets(&mut self) -> &mut PacketEncoder {
        &mut self.encoder
    }

    /// Whether enough has been encoded to be worth sending.
    pub fn is_full(&self) -> bool {
        self.encoder.buffered() >= self.send_buffer
    }

    /// Encodes one packet by appending its payload.
    pub fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.encoder.begin();
        write(self.encoder.payload());
        self.encoder.end(start);
    }

    /// Sends what has been encoded, waiting for a slow client as long as the settings allow.
    pub async fn flush(&mut self) -> Result<(), ConnectionError> {
        if self.encoder.buffered() == 0 {
            return Ok(());
        }
        let Self {
            writer,
            encoder,
            killed,
            shutdown,
            write_timeout,
            ..
        } = self;
        self.torn = true;
        let written = async {
            writer.write_all(encoder.bytes()).await?;
            writer.flush().await
        };
        tokio::select! {
            biased;
            written = timeout(*write_timeout, written) => {
                written.map_err(|_| ConnectionError::WriteTooSlow(*write_timeout))??;
            }
            end = ended(killed, shutdown) => return Err(end),
        }
        self.torn = false;
        encoder.clear(4 * self.send_buffer);
        Ok(())
    }

    /// Sends a last packet, as far as the client takes it at once, and closes.
    pub async fn close(mut self) {
        let patience = Duration::from_secs(1);
        let last_words = async {
            if !self.torn {
                self.writer.write_all(self.encoder.bytes()).await?;
            }
            self.writer.shutdown().await
        };
        // The connection ends whether or not the client hears why.
        let _ = timeout(patience, last_words).await;
    }
}

/// Waits until someone else ends the connection.
async fn ended(killed: &CancellationToken, shutdown: &CancellationToken) -> ConnectionError {
    tokio::select! {
        () = killed.cancelled() => ConnectionError::Killed,
        () = shutdown.cancelled() => ConnectionError::ShuttingDown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{DuplexStream, duplex, split};

    fn channel(buffer_bytes: usize, write_timeout: Duration) -> (Channel, DuplexStream) {
        let (server, client) = duplex(buffer_bytes);
        let (reader, writer) = split(server);
        let shutdown = CancellationToken::new();
        let channel = Channel::new(reader, writer, 1000, 100, write_timeout, shutdown);
        (channel, client)
    }

    const PATIENT: Duration = Duration::from_secs(60);
    const PING: [u8; 5] = [1, 0, 0, 0, 0x0e];

    #[tokio::test]
    async fn a_client_that_hangs_up_ends_the_work_at_once() {
        let (mut channel, client) = channel(64, PATIENT);
        drop(client);
        let end = channel.watch(std::future::pending::<()>()).await;
        assert!(matches!(end, Err(ConnectionError::ClientGone)));
    }

    #[tokio::test]
    async fn what_a_client_sends_ahead_is_the_next_command() {
        let (mut channel, mut client) = channel(64, PATIENT);
        client.write_all(&PING).await.expect("room");
        let (done, work) = tokio::sync::oneshot::channel::<()>();
        let watched = channel.watch(work);
        let work = async {
            tokio::task::yield_now().await;
            done.send(()).expect("the work waits");
        };
        let (watched, ()) = tokio::join!(watched, work);
        assert!(watched.is_ok());
        let command = channel.read_command(PATIENT).await.expect("a command");
        assert_eq!(command[..], [0x0e]);
    }

    #[tokio::test]
    async fn a_killed_connection_stops_working_waiting_and_writing() {
        let (mut channel, _client) = channel(16, PATIENT);
        let killed = CancellationToken::new();
        channel.set_killed(killed.clone());
        killed.cancel();
        let end = channel.watch(std::future::pending::<()>()).await;
        assert!(matches!(end, Err(ConnectionError::Killed)));
        let end = channel.read_command(PATIENT).await;
        assert!(matches!(end, Err(ConnectionError::KilledWhileIdle)));
        channel.put(|out| out.extend_from_slice(&[0; 100]));
        let end = channel.flush().await;
        assert!(matches!(end, Err(ConnectionError::Killed)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_dropped_in_the_end() {
        let (mut channel, _client) = channel(16, Duration::from_secs(5));
        channel.put(|out| out.extend_from_slice(&[0; 100]));
        let end = channel.flush().await;
        assert!(matches!(end, Err(ConnectionError::WriteTooSlow(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_client_is_dropped_in_the_end() {
        let (mut channel, _client) = channel(16, PATIENT);
        let end = channel.read_command(Duration::from_secs(3)).await;
        assert!(matches!(end, Err(ConnectionError::Idle(_))));
    }

    #[tokio::test]
    async fn the_answer_to_a_packet_that_is_too_large_follows_its_last_part() {
        let (mut channel, mut client) = channel(1 << 16, PATIENT);
        channel.set_max_payload(1000);
        let sender = tokio::spawn(async move {
            let mut bytes = vec![0xff, 0xff, 0xff, 0];
            bytes.resize(4 + 0xff_ffff, b'x');
            bytes.extend_from_slice(&[1, 0, 0, 1, b'x']);
            client.write_all(&bytes).await.expect("it is read");
            client
        });
        let end = channel.read_command(PATIENT).await;
        assert!(matches!(end, Err(ConnectionError::Packet(_))), "{end:?}");
        let _client = sender.await.expect("sent");
        assert_eq!(channel.packets().sequence(), 2);
    }
}
