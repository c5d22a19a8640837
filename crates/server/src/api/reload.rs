//! `POST /x/reload`: the settings, read again.

use std::pin::Pin;
use std::sync::Arc;

use barchan_wire::lifecycle::{ReloadReport, code};
use http::Response;

use super::Api;
use super::errors::Refusal;
use super::reply::{self, Body};
use crate::config::SettingsError;

/// What reading them again came to.
pub(crate) type Reloaded = Result<ReloadReport, SettingsError>;

/// Has them read again.
pub(crate) type Reload =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Reloaded> + Send>> + Send + Sync>;

impl Api {
    pub(super) async fn reload(&self) -> Result<Response<Body>, Refusal> {
        match (self.reload)().await {
            Ok(report) => Ok(reply::json(200, &report)),
            Err(error) => Err(Refusal::new(
                409,
                code::SETTINGS_UNUSABLE,
                format!("nothing is changed: {error}"),
            )),
        }
    }
}
