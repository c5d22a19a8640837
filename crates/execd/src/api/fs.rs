//! The routes of the file tools, `POST /x/fs/…`. Each reads a request, does the work where it
//! belongs, and answers; a refusal has codes of its own.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::fs::refusal::{Code, Refusal};
use barchan_wire::execd::fs::search::{Found, Glob, Grep, Paths, SEARCH_MS_MAX};
use barchan_wire::execd::fs::{
    Content, Deleted, Edit, Edited, Encoding, Entries, Ls, READ_BYTES_MAX, Read, Target, Write,
    Written,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::{Answer, json};
use super::{body, unknown};
use crate::app::App;
use crate::files::work::{Stop, Weight, run};
use crate::fs::refusal::{of_fault, refused};
use crate::fs::resolve::{Base, shown};
use crate::fs::{delete, edit, glob, grep, ls, read, write};
use crate::limits::{
    FILE_BODY_BYTES_MAX, GLOB_MS, GREP_MS, INLINE_BYTES_MAX, READ_MS, TOOL_BODY_BYTES_MAX,
};

/// Answers a tool.
pub(super) async fn route(app: &Rc<App>, tool: &str, request: Request<Payload>) -> Answer {
    let tools = Tools { app };
    let done = match tool {
        "ls" => told(tools.ls(request).await),
        "read" => told(tools.read(request).await),
        "write" => told(tools.write(request).await),
        "edit" => told(tools.edit(request).await),
        "delete" => told(tools.delete(request).await),
        "grep" => told(tools.grep(request).await),
        "glob" => told(tools.glob(request).await),
        _ => return unknown(request.uri().path()),
    };
    done.unwrap_or_else(|refusal| answer(&refusal))
}

/// Whether there is such a tool.
pub(super) fn is_tool(name: &str) -> bool {
    matches!(
        name,
        "ls" | "read" | "write" | "edit" | "delete" | "grep" | "glob"
    )
}

fn told(done: Result<impl Serialize, Refusal>) -> Result<Answer, Refusal> {
    done.map(|value| json(&value))
}

async fn asked<T: DeserializeOwned>(
    request: Request<Payload>,
    bytes_max: usize,
) -> Result<T, Refusal> {
    body::json(request.into_body(), bytes_max)
        .await
        .map_err(of_fault)
}

/// Does work on a thread, or at once if it is light.
async fn work<T: Send + 'static>(
    weight: Weight,
    job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    run(None, weight, || Ok(job())).await.map_err(of_fault)?
}

fn weight(bytes: u64) -> Weight {
    if bytes > INLINE_BYTES_MAX {
        Weight::Heavy
    } else {
        Weight::Light
    }
}

struct Tools<'a> {
    app: &'a App,
}

impl Tools<'_> {
    fn base(&self, workdir: Option<&str>) -> Result<Base, Refusal> {
        let home = self.app.environment.own("HOME").unwrap_or("/");
        let mut base = Base {
            workdir: self.app.cwd.clone(),
            home: home.into(),
        };
        if let Some(workdir) = workdir {
            base.workdir = base.path(workdir)?;
        }
        Ok(base)
    }

    async fn ls(&self, request: Request<Payload>) -> Result<Entries, Refusal> {
        let asked: Ls = asked(request, TOOL_BODY_BYTES_MAX).await?;
        let base = self.base(asked.workdir.as_deref())?;
        let path = base.path(&asked.path)?;
        let list = move || {
            let entries = ls::list(&path, asked.details);
            entries.map_err(|refusal| base.advise(refusal, &path))
        };
        let entries = work(Weight::Heavy, list).await?;
        Ok(Entries { entries })
    }

    async fn read(&self, request: Request<Payload>) -> Result<Content, Refusal> {
        let asked: Read = asked(request, TOOL_BODY_BYTES_MAX).await?;
        let base = self.base(asked.workdir.as_deref())?;
        let path = base.path(&asked.path)?;
        let most = READ_BYTES_MAX as u64;
        let order = read::Order {
            path: path.clone(),
            offset: asked.offset.max(0).unsigned_abs(),
            limit: asked.limit.max(0).unsigned_abs(),
            bytes_max: asked.bytes_max.unwrap_or(most).min(most) as usize,
        };
        let begun = read::Begun::open(order).map_err(|refusal| base.advise(refusal, &path))?;
        let (stop, _waiter) = Stop::after_ms(READ_MS);
        let weight = if begun.is_short() {
            Weight::Light
        } else {
            Weight::Heavy
        };
        work(weight, move || begun.read(&stop)).await
    }

    async fn write(&self, request: Request<Payload>) -> Result<Written, Refusal> {
        let asked: Write = asked(request, FILE_BODY_BYTES_MAX).await?;
        let base = self.base(asked.workdir.as_deref())?;
        let path = base.path(&asked.path)?;
        let content = match asked.encoding {
            Encoding::Utf8 => asked.content.into_bytes(),
            Encoding::Base64 => STANDARD.decode(asked.content).map_err(|error| {
                refused(
                    Code::InvalidRequest,
                    format!("`content` is no base64: {error}"),
                )
            })?,
        };
        let size = content.len() as u64;
        let turn = self.app.turns.change().await;
        let save = move || {
            let written = write::file(&path, &content, asked.create);
            drop(turn);
            written
        };
        work(weight(size), save).await?;
        Ok(Written { size })
    }

    async fn edit(&self, request: Request<Payload>) -> Result<Edited, Refusal> {
        let asked: Edit = asked(request, FILE_BODY_BYTES_MAX).await?;
        let base = self.base(asked.workdir.as_deref())?;
        let path = base.path(&asked.path)?;
        let change = edit::Change {
            old: asked.old,
            new: asked.new,
            all: asked.replace_all,
        };
        let turn = self.app.turns.change().await;
        let size = rustix::fs::stat(&path).map_or(0, |found| found.st_size.unsigned_abs());
        let replace = move || {
            let edited = edit::file(&path, &change);
            drop(turn);
            edited.map_err(|refusal| base.advise(refusal, &path))
        };
        let occurrences = work(weight(size), replace).await?;
        Ok(Edited { occurrences })
    }

    async fn delete(&self, request: Request<Payload>) -> Result<Deleted, Refusal> {
        let asked: Target = asked(request, TOOL_BODY_BYTES_MAX).await?;
        let base = self.base(asked.workdir.as_deref())?;
        let path = base.path(&asked.path)?;
        let turn = self.app.turns.change().await;
        let remove = move || {
            let removed = delete::path(&path, &base.workdir);
            drop(turn);
            removed.map_err(|refusal| base.advise(refusal, &path))?;
            Ok(shown(&path))
        };
        let path = work(Weight::Heavy, remove).await?;
        Ok(Deleted { path })
    }

    async fn grep(&self, request: Request<Payload>) -> Result<Found, Refusal> {
        let asked: Grep = asked(request, TOOL_BODY_BYTES_MAX).await?;
        let base = self.base(asked.workdir.as_deref())?;
        let path = base.path(asked.path.as_deref().unwrap_or("."))?;
        let limit_ms = asked.time_limit_ms.unwrap_or(GREP_MS).min(SEARCH_MS_MAX);
        let turn = self.app.turns.search().await;
        let (stop, _waiter) = Stop::after_ms(limit_ms);
        let search = move || {
            let order = grep::Order::new(asked, path.clone())?;
            let found = grep::search(&order, &stop);
            drop(turn);
            found.map_err(|refusal| base.advise(refusal, &path))
        };
        work(Weight::Heavy, search).await
    }

    async fn glob(&self, request: Request<Payload>) -> Result<Paths, Refusal> {
        let asked: Glob = asked(request, TOOL_BODY_BYTES_MAX).await?;
        let base = self.base(asked.workdir.as_deref())?;
        let path = base.path(asked.path.as_deref().unwrap_or("."))?;
        let limit_ms = asked.time_limit_ms.unwrap_or(GLOB_MS).min(SEARCH_MS_MAX);
        let turn = self.app.turns.search().await;
        let (stop, _waiter) = Stop::after_ms(limit_ms);
        let search = move || {
            let found = glob::search(&path, &asked.pattern, asked.max_count, &stop);
            drop(turn);
            found.map_err(|refusal| base.advise(refusal, &path))
        };
        work(Weight::Heavy, search).await
    }
}

/// A refusal, with the status that stands for its code.
fn answer(refusal: &Refusal) -> Answer {
    let mut answer = json(refusal);
    *answer.status_mut() = match refusal.code {
        Code::PathNotFound => StatusCode::NOT_FOUND,
        Code::PermissionDenied | Code::Protected => StatusCode::FORBIDDEN,
        Code::AlreadyExists => StatusCode::CONFLICT,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
        Code::Failed | Code::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    answer
}
