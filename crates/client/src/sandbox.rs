//! Calls to the daemon of one sandbox, through the server's proxy.

use barchan_wire::execd;
use barchan_wire::execd::command::{CommandRequest, CommandStatus};
use barchan_wire::execd::file::{FileInfos, UploadMetadata};
use barchan_wire::execd::metrics::Metrics;
use barchan_wire::execd::pty::PtyRequest;
use barchan_wire::execd::session::SessionAnswer;
use barchan_wire::execd::transfer::Unpacked;
use barchan_wire::id::SandboxId;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::io::AsyncRead;

use crate::command::Running;
use crate::error::ClientError;
use crate::files::{Download, Progress, Upload, streamed};
use crate::http::{Http, empty, full, json, parse};
use crate::terminal::Terminal;

/// The daemon of one sandbox.
#[derive(Debug, Clone)]
pub struct Sandbox {
    pub(crate) http: Http,
    prefix: String,
}

impl Sandbox {
    pub(crate) fn new(http: Http, id: &SandboxId) -> Self {
        let prefix = format!("/v1/sandboxes/{id}/proxy/{}", execd::PORT);
        Self { http, prefix }
    }

    /// Whether the daemon answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), ClientError> {
        self.http
            .call::<()>(Method::GET, &self.path("/ping"), None)
            .await
            .map(drop)
    }

    /// Starts a command in the foreground; the answer is what it says while it runs.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn run(&self, request: &CommandRequest) -> Result<Running, ClientError> {
        let request = self
            .http
            .request(Method::POST, &self.path("/command"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::ACCEPT, "text/event-stream")
            .body(full(json(request)?))?;
        let answer = self.http.send(request).await?;
        Ok(Running::new(answer.into_body(), self.http.limits()))
    }

    /// Ends a command and everything it started.
    ///
    /// # Errors
    /// When there is no such command or it has ended.
    pub async fn interrupt(&self, command: &str) -> Result<(), ClientError> {
        let path = self.path(&format!("/command?id={}", encoded(command)));
        self.http
            .call::<()>(Method::DELETE, &path, None)
            .await
            .map(drop)
    }

    /// How a command stands.
    ///
    /// # Errors
    /// When there is no such command.
    pub async fn status(&self, command: &str) -> Result<CommandStatus, ClientError> {
        self.http
            .get(&self.path(&format!("/command/status/{}", encoded(command))))
            .await
    }

    /// What is known about one path.
    ///
    /// # Errors
    /// When there is no such file.
    pub async fn info(&self, path: &str) -> Result<FileInfos, ClientError> {
        self.http
            .get(&self.path(&format!("/files/info?path={}", encoded(path))))
            .await
    }

    /// Writes a file, streamed from a reader; folders on its way are made.
    ///
    /// # Errors
    /// `Local` when the reader fails, `Api` when the daemon refuses.
    pub async fn upload(
        &self,
        metadata: &UploadMetadata,
        content: impl AsyncRead + Send + 'static,
        progress: Progress,
    ) -> Result<(), ClientError> {
        let Upload {
            body,
            content_type,
            moved,
        } = Upload::new(metadata, content, progress)?;
        let request = self
            .http
            .request(Method::POST, &self.path("/files/upload"))
            .header(http::header::CONTENT_TYPE, content_type)
            .body(body)?;
        self.http.send_long(request, &moved).await.map(drop)
    }

    /// Reads a file as a stream.
    ///
    /// # Errors
    /// When there is no such file.
    pub async fn download(&self, path: &str) -> Result<Download, ClientError> {
        let path = self.path(&format!("/files/download?path={}", encoded(path)));
        let request = self.http.request(Method::GET, &path).body(empty())?;
        Ok(Download::new(
            self.http.send(request).await?,
            self.http.limits(),
        ))
    }

    /// Reads a directory as a tar stream.
    ///
    /// # Errors
    /// When there is no such directory.
    pub async fn pack(&self, path: &str) -> Result<Download, ClientError> {
        let path = self.path(&format!("/x/tar?path={}", encoded(path)));
        let request = self.http.request(Method::GET, &path).body(empty())?;
        Ok(Download::new(
            self.http.send(request).await?,
            self.http.limits(),
        ))
    }

    /// Unpacks a tar stream into a directory, which is made if it is missing. Links that lead out
    /// of it are made as they are.
    ///
    /// # Errors
    /// `Local` when the reader fails, `Api` when the daemon refuses.
    pub async fn unpack(
        &self,
        path: &str,
        archive: impl AsyncRead + Send + 'static,
        progress: Progress,
    ) -> Result<Unpacked, ClientError> {
        let (body, moved) = streamed(archive, progress);
        let path = self.path(&format!("/x/tar?links=keep&path={}", encoded(path)));
        let request = self.http.request(Method::PUT, &path);
        let request = request
            .header(http::header::CONTENT_TYPE, "application/x-tar")
            .body(body)?;
        let answer = self.http.send_long(request, &moved).await?;
        self.http.read_json(answer).await
    }

    /// Opens a terminal; its id. Its process starts when somebody connects.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn open_terminal(&self, request: &PtyRequest) -> Result<String, ClientError> {
        let path = self.path("/pty");
        let answer = self.http.call(Method::POST, &path, Some(request)).await?;
        parse::<SessionAnswer>(&answer).map(|answer| answer.session_id)
    }

    /// Connects to a terminal.
    ///
    /// # Errors
    /// When there is no such terminal, or somebody else is connected to it.
    pub async fn attach(&self, terminal: &str) -> Result<Terminal, ClientError> {
        let path = self.path(&format!("/pty/{}/ws", encoded(terminal)));
        Terminal::connect(&self.http, &path).await
    }

    /// Ends a terminal and everything that was started on it.
    ///
    /// # Errors
    /// When there is no such terminal.
    pub async fn close_terminal(&self, terminal: &str) -> Result<(), ClientError> {
        let path = self.path(&format!("/pty/{}", encoded(terminal)));
        self.http
            .call::<()>(Method::DELETE, &path, None)
            .await
            .map(drop)
    }

    /// The sandbox's load.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub async fn metrics(&self) -> Result<Metrics, ClientError> {
        self.http.get(&self.path("/metrics")).await
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }
}

pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
