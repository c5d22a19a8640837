//! The routes of files and directories. Each reads a request, does the work where it belongs, and
//! answers; the same routes serve under another user's identity.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::file::{FileInfos, Permission, Rename, Replace, Replaced};
use http::{Method, Request};

use super::answer::{Answer, done, json};
use super::query::Query;
use super::{body, not_allowed, transfer, unknown, upload};
use crate::app::App;
use crate::environment::Variables;
use crate::fault::{Fault, Kind};
use crate::files::expand::escape;
use crate::files::glob::Glob;
use crate::files::identity::Identity;
use crate::files::info::Teller;
use crate::files::permission::Rights;
use crate::files::spelling::Spelling;
use crate::files::work::{Stop, Weight, run};
use crate::files::{info, make, remove, rename, replace, walk};
use crate::limits::{FILE_BODY_BYTES_MAX, WALK_MS};
use crate::small_file;

/// A request for files, by a user.
pub(super) struct Files<'a> {
    /// The daemon.
    pub(super) app: &'a App,
    /// The user, if not the daemon's own.
    pub(super) who: Option<Identity>,
    query: &'a Query,
    /// How paths are written.
    pub(super) spelling: Spelling,
}

/// Answers a path below `/files` or `/directories`.
pub(super) async fn route(
    app: &Rc<App>,
    who: Option<Identity>,
    segments: &[&str],
    query: &Query,
    request: Request<Payload>,
) -> Result<Answer, Fault> {
    let files = Files::new(app, who, query)?;
    let method = request.method().clone();
    match (&method, segments) {
        (&Method::GET, ["files", "info"]) => files.info().await,
        (&Method::DELETE, ["files"]) => files.remove(Weight::Light, remove::file).await,
        (&Method::POST, ["files", "mv"]) => files.rename(request.into_body()).await,
        (&Method::POST, ["files", "permissions"]) => files.permit(request.into_body()).await,
        (&Method::GET, ["files", "search"]) => files.search().await,
        (&Method::POST, ["files", "replace"]) => files.replace(request.into_body()).await,
        (&Method::POST, ["files", "upload"]) => upload::upload(&files, request).await,
        (&Method::GET, ["files", "download"]) => {
            let path = files.path(query.required("path")?)?;
            transfer::download(who, path, query, request.headers()).await
        }
        (&Method::GET, ["directories", "list"]) => files.list().await,
        (&Method::POST, ["directories"]) => files.make(request.into_body()).await,
        (&Method::DELETE, ["directories"]) => files.remove(Weight::Heavy, remove::tree).await,
        (_, ["files", "info" | "search" | "download"] | ["directories", "list"]) => {
            Ok(not_allowed("GET"))
        }
        (_, ["files", "mv" | "permissions" | "replace" | "upload"]) => Ok(not_allowed("POST")),
        (_, ["files"]) => Ok(not_allowed("DELETE")),
        (_, ["directories"]) => Ok(not_allowed("POST, DELETE")),
        _ => Ok(unknown(request.uri().path())),
    }
}

impl<'a> Files<'a> {
    /// A request by the daemon itself, or by a user.
    ///
    /// # Errors
    /// When it spells paths in a way that nobody knows.
    pub(super) fn new(
        app: &'a App,
        who: Option<Identity>,
        query: &'a Query,
    ) -> Result<Self, Fault> {
        let spelling = Spelling::parse(query.get("paths"))?;
        Ok(Self {
            app,
            who,
            query,
            spelling,
        })
    }

    /// The absolute path that a text names.
    pub(super) fn path(&self, text: &[u8]) -> Result<PathBuf, Fault> {
        // Read when a path first names one, and once for all that it names.
        let variables = OnceCell::new();
        let lookup = |name: &str| {
            let all: &Variables = variables.get_or_init(|| self.variables());
            all.get(name).cloned()
        };
        Ok(self.app.cwd.join(self.spelling.read(text, &lookup)?))
    }

    /// The variables that paths may use; another user's home is that user's own.
    pub(super) fn variables(&self) -> Variables {
        let mut variables = self.app.environment.now();
        if let Some(home) = self.who.and_then(Identity::home) {
            variables.insert("HOME".to_owned(), home);
        }
        variables
    }

    /// Every `path` of the query, as asked and as meant.
    fn paths(&self) -> Result<Vec<(String, PathBuf)>, Fault> {
        self.query.required("path")?;
        let pairs = self
            .query
            .all("path")
            .map(|text| Ok((escape(text), self.path(text)?)));
        pairs.collect()
    }

    async fn info(&self) -> Result<Answer, Fault> {
        let paths = self.paths()?;
        let spelling = self.spelling;
        let look = move || {
            let teller = Teller::new(spelling);
            let infos = paths.into_iter().map(|(asked, path)| {
                let found = info::look(&path)?;
                Ok((asked, teller.describe(&path, &found)))
            });
            infos.collect::<Result<FileInfos, Fault>>()
        };
        Ok(json(&run(self.who, Weight::Light, look).await?))
    }

    async fn remove(
        &self,
        weight: Weight,
        remove: fn(&std::path::Path) -> Result<(), Fault>,
    ) -> Result<Answer, Fault> {
        let paths = self.paths()?;
        let work = move || paths.iter().try_for_each(|(_, path)| remove(path));
        run(self.who, weight, work).await?;
        Ok(done())
    }

    async fn rename(&self, body: Payload) -> Result<Answer, Fault> {
        let moves: Vec<Rename> = body::json(body, FILE_BODY_BYTES_MAX).await?;
        let pairs = moves.iter().map(|one| {
            Ok((
                self.path(one.src.as_bytes())?,
                self.path(one.dest.as_bytes())?,
            ))
        });
        let pairs: Vec<_> = pairs.collect::<Result<_, Fault>>()?;
        let work = move || {
            pairs
                .iter()
                .try_for_each(|(from, to)| rename::entry(from, to))
        };
        run(self.who, Weight::Heavy, work).await?;
        Ok(done())
    }

    /// A body of rights by path.
    async fn rights(&self, body: Payload) -> Result<Vec<(PathBuf, Permission)>, Fault> {
        let asked: BTreeMap<String, Permission> = body::json(body, FILE_BODY_BYTES_MAX).await?;
        let pairs = asked
            .into_iter()
            .map(|(text, one)| Ok((self.path(text.as_bytes())?, one)));
        pairs.collect()
    }

    async fn permit(&self, body: Payload) -> Result<Answer, Fault> {
        let asked = self.rights(body).await?;
        let work = move || {
            let users = small_file::users();
            asked
                .iter()
                .try_for_each(|(path, one)| Rights::new(one, &users).apply(path))
        };
        run(self.who, Weight::Light, work).await?;
        Ok(done())
    }

    async fn make(&self, body: Payload) -> Result<Answer, Fault> {
        let asked = self.rights(body).await?;
        let work = move || {
            let users = small_file::users();
            asked.iter().try_for_each(|(path, one)| {
                let rights = Rights::new(one, &users);
                make::directories(path, rights)?;
                rights.apply(path)
            })
        };
        run(self.who, Weight::Light, work).await?;
        Ok(done())
    }

    async fn list(&self) -> Result<Answer, Fault> {
        let root = self.path(self.query.required("path")?)?;
        let depth = self.query.number("depth")?.unwrap_or(1);
        let (stop, _waiter) = Stop::after_ms(WALK_MS);
        let spelling = self.spelling;
        let work = move || walk::list(&root, depth, &Teller::new(spelling), &stop);
        Ok(json(&run(self.who, Weight::Heavy, work).await?))
    }

    async fn search(&self) -> Result<Answer, Fault> {
        let root = self.path(self.query.required("path")?)?;
        let pattern = self.query.get("pattern").filter(|text| !text.is_empty());
        let glob = Glob::new(pattern.unwrap_or(b"**")).map_err(|why| {
            Fault::new(Kind::BadRequest, format!("`pattern` makes no sense: {why}"))
        })?;
        let (stop, _waiter) = Stop::after_ms(WALK_MS);
        let spelling = self.spelling;
        let work = move || walk::search(&root, &glob, &Teller::new(spelling), &stop);
        Ok(json(&run(self.who, Weight::Heavy, work).await?))
    }

    async fn replace(&self, body: Payload) -> Result<Answer, Fault> {
        let asked: BTreeMap<String, Replace> = body::json(body, FILE_BODY_BYTES_MAX).await?;
        if let Some((path, _)) = asked.iter().find(|(_, one)| one.old.is_empty()) {
            let message = format!("`old` is empty for {path}; say what to look for");
            return Err(Fault::new(Kind::BadRequest, message));
        }
        let orders = asked.iter().map(|(text, one)| {
            Ok(replace::Order {
                path: self.path(text.as_bytes())?,
                old: one.old.clone().into_bytes(),
                new: one.new.clone().into_bytes(),
            })
        });
        let orders: Vec<_> = orders.collect::<Result<_, Fault>>()?;
        let counts = run(self.who, Weight::Heavy, move || replace::all(&orders)).await?;
        if !self.query.flag("verbose") {
            return Ok(done());
        }
        let counts = counts.into_iter().map(|count| Replaced { count });
        let told: BTreeMap<&String, Replaced> = asked.keys().zip(counts).collect();
        Ok(json(&told))
    }
}
