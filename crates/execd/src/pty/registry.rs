//! All terminals.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::Terminal;
use crate::app::App;
use crate::fault::{Fault, Kind};
use crate::limits::PTYS_MAX;

/// The terminals, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    all: RefCell<VecDeque<Rc<Terminal>>>,
}

impl Terminals {
    /// Remembers a terminal; when there are too many, the oldest one that has ended is forgotten.
    ///
    /// # Errors
    /// When too many have not ended.
    pub(crate) fn add(&self, terminal: &Rc<Terminal>) -> Result<(), Fault> {
        let mut all = self.all.borrow_mut();
        if all.len() >= PTYS_MAX {
            let Some(ended) = all.iter().position(|it| it.has_ended()) else {
                let message = format!("there are {PTYS_MAX} terminals already; delete one first");
                return Err(Fault::new(Kind::InUse, message));
            };
            all.remove(ended);
        }
        all.push_back(Rc::clone(terminal));
        Ok(())
    }

    /// The terminal of an id.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn get(&self, id: &str) -> Result<Rc<Terminal>, Fault> {
        let all = self.all.borrow();
        let found = all.iter().find(|it| it.id == id).cloned();
        found.ok_or_else(|| unknown(id))
    }

    /// Forgets a terminal, which is then to be closed.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn remove(&self, id: &str) -> Result<Rc<Terminal>, Fault> {
        let mut all = self.all.borrow_mut();
        let at = all.iter().position(|it| it.id == id);
        at.and_then(|at| all.remove(at)).ok_or_else(|| unknown(id))
    }

    /// Closes every terminal.
    pub(crate) async fn close_all(&self, app: &App) {
        let all: Vec<_> = self.all.borrow_mut().drain(..).collect();
        for terminal in all {
            terminal.close(app).await;
        }
    }
}

fn unknown(id: &str) -> Fault {
    let id: String = id.chars().take(64).collect();
    let message = format!("no terminal has the id {id}; create one with POST /pty");
    Fault::new(Kind::NoCommand, message)
}
