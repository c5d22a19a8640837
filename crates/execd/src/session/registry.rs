//! All sessions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::Session;
use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::limits::SESSIONS_MAX;

/// The sessions by id.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_id: RefCell<HashMap<String, Rc<Session>>>,
}

impl Sessions {
    /// Whether another one may be opened.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn room(&self) -> Result<(), Fault> {
        if self.by_id.borrow().len() < SESSIONS_MAX {
            return Ok(());
        }
        let message = format!("there are {SESSIONS_MAX} sessions already; delete one first");
        Err(Fault::new(Kind::InUse, message))
    }

    /// Remembers a session.
    pub(crate) fn add(&self, session: &Rc<Session>) {
        self.by_id
            .borrow_mut()
            .insert(session.id.clone(), Rc::clone(session));
    }

    /// The session of an id.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn get(&self, id: &str) -> Result<Rc<Session>, Fault> {
        let found = self.by_id.borrow().get(id).cloned();
        found.ok_or_else(|| unknown(id))
    }

    /// Forgets a session, which is then to be closed.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn remove(&self, id: &str) -> Result<Rc<Session>, Fault> {
        let found = self.by_id.borrow_mut().remove(id);
        found.ok_or_else(|| unknown(id))
    }

    /// Whether any session runs something.
    pub(crate) fn any_running(&self) -> bool {
        let by_id = self.by_id.borrow();
        by_id.values().any(|session| session.is_running())
    }

    /// Closes every session.
    pub(crate) async fn close_all(&self, app: &App) {
        let all: Vec<_> = self.by_id.borrow_mut().drain().collect();
        for (_, session) in all {
            session.close(app).await;
        }
    }
}

/// There is no session of this id.
pub(super) fn unknown(id: &str) -> Fault {
    let id: String = id.chars().take(64).collect();
    let message = format!("no session has the id {id}; create one with POST /session");
    Fault::new(Kind::NoCommand, message)
}
