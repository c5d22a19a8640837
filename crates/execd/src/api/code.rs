//! The routes of code contexts.

use std::rc::Rc;

use barchan_daemon::payload::Payload;
use barchan_wire::execd::code::{CodeContext, CodeRequest, ContextRequest, SHELL};
use barchan_wire::execd::command::CommandRequest;
use barchan_wire::limits::COMMAND_BODY_BYTES_MAX;
use http::Request;

use super::answer::{Answer, Body, done, json};
use super::query::Query;
use super::{body, command};
use crate::app::App;
use crate::code::{Context, run as cell};
use crate::fault::{Fault, Kind};

/// Largest body that asks for a context, in bytes.
const CONTEXT_BODY_BYTES_MAX: usize = 1024 * 1024;

/// `POST /code`
pub(crate) async fn run(app: &Rc<App>, request: Request<Payload>) -> Result<Answer, Fault> {
    let keep_ends = command::keeps_line_ends(app, request.headers());
    let asked: CodeRequest = body::json(request.into_body(), COMMAND_BODY_BYTES_MAX).await?;
    if asked.code.trim().is_empty() {
        return Err(Fault::new(Kind::BadRequest, "`code` is empty"));
    }
    let (id, language) = (asked.context.id, asked.context.language);
    let context = match (id.as_str(), language.as_str()) {
        ("", "" | SHELL) => {
            let asked = CommandRequest {
                command: Some(asked.code),
                ..CommandRequest::default()
            };
            return command::run_asked(app, asked, None, keep_ends);
        }
        ("", language) => app.contexts.default_of(app, language)?,
        (id, language) => {
            let context = known(app, id)?;
            if !language.is_empty() && !language.trim().eq_ignore_ascii_case(&context.language) {
                let own = &context.language;
                let message = format!("context {id} is one of {own}, not of {language:?}");
                return Err(Fault::new(Kind::BadRequest, message));
            }
            context
        }
    };
    Ok(command::stream(match context.claim() {
        Some(claim) => Body::Stream(cell::start(app, claim, asked.code)),
        None => Body::Whole(cell::refuse(&context)),
    }))
}

/// `DELETE /code`: by the id that the stream began with, be it of a context or of a shell command.
pub(crate) async fn interrupt(app: &App, query: &Query) -> Result<Answer, Fault> {
    let id = String::from_utf8_lossy(query.required("id")?);
    match app.contexts.get(&id) {
        Some(context) => context.interrupt(app).await.map(|()| done()),
        None if app.commands.get(&id).is_some() => command::interrupt(app, query).await,
        None => Err(unknown(&id)),
    }
}

/// `POST /code/context`
pub(crate) async fn create(app: &Rc<App>, request: Request<Payload>) -> Result<Answer, Fault> {
    let asked: ContextRequest = body::json(request.into_body(), CONTEXT_BODY_BYTES_MAX).await?;
    let context = app.contexts.create(app, asked, false)?;
    Ok(json(&context.told()))
}

/// `GET /code/contexts`
pub(crate) fn list(app: &App, query: &Query) -> Result<Answer, Fault> {
    let language = query.get("language").map(String::from_utf8_lossy);
    let language = language.map(|language| language.trim().to_lowercase());
    let language = language.filter(|language| !language.is_empty());
    if language.as_deref() == Some(SHELL) {
        let message = format!("{SHELL:?} is the shell and has no contexts");
        return Err(Fault::new(Kind::Failed, message));
    }
    let contexts = app.contexts.list(language.as_deref());
    let told: Vec<CodeContext> = contexts.iter().map(|context| context.told()).collect();
    Ok(json(&told))
}

/// `DELETE /code/contexts`
pub(crate) async fn delete_all(app: &App, query: &Query) -> Result<Answer, Fault> {
    let language = String::from_utf8_lossy(query.required("language")?);
    for context in app.contexts.list(Some(&language.trim().to_lowercase())) {
        app.contexts.delete(app, &context).await;
    }
    Ok(done())
}

/// `GET /code/contexts/{id}`
pub(crate) fn look(app: &App, id: &str) -> Result<Answer, Fault> {
    Ok(json(&known(app, id)?.told()))
}

/// `DELETE /code/contexts/{id}`
pub(crate) async fn delete(app: &App, id: &str) -> Result<Answer, Fault> {
    let context = known(app, id)?;
    app.contexts.delete(app, &context).await;
    Ok(done())
}

fn known(app: &App, id: &str) -> Result<Rc<Context>, Fault> {
    app.contexts.get(id).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Fault {
    let id: String = id.chars().take(64).collect();
    let message = format!("no code context has the id {id}; make one by POST /code/context");
    Fault::new(Kind::NoCommand, message)
}
