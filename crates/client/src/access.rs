//! Calls about keys and tenants, for admins.

use barchan_wire::lifecycle::{
    CreateKey, CreateTenant, KeyList, KeyReport, NewKey, RotateKey, TenantList, TenantReport,
    TenantTerms,
};
use http::Method;

use crate::error::ClientError;
use crate::http::parse;
use crate::lifecycle::Client;
use crate::sandbox::encoded;

impl Client {
    /// Every key, the oldest first.
    ///
    /// # Errors
    /// When the server does not allow it.
    pub async fn keys(&self) -> Result<Vec<KeyReport>, ClientError> {
        Ok(self.http.get::<KeyList>("/x/keys").await?.keys)
    }

    /// Makes a key. The answer is the only one in which it is shown.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn create_key(&self, request: &CreateKey) -> Result<NewKey, ClientError> {
        parse(
            &self
                .http
                .call(Method::POST, "/x/keys", Some(request))
                .await?,
        )
    }

    /// Replaces a key. The answer is the only one in which the new one is shown.
    ///
    /// # Errors
    /// When there is no such key, or the server refuses.
    pub async fn rotate_key(&self, id: &str, request: RotateKey) -> Result<NewKey, ClientError> {
        let path = format!("/x/keys/{}/rotate", encoded(id));
        parse(&self.http.call(Method::POST, &path, Some(&request)).await?)
    }

    /// Takes a key away.
    ///
    /// # Errors
    /// When there is no such key, or the server refuses.
    pub async fn revoke_key(&self, id: &str) -> Result<(), ClientError> {
        let path = format!("/x/keys/{}", encoded(id));
        let done = self.http.call::<()>(Method::DELETE, &path, None);
        done.await.map(drop)
    }

    /// Every tenant, by name.
    ///
    /// # Errors
    /// When the server does not allow it.
    pub async fn tenants(&self) -> Result<Vec<TenantReport>, ClientError> {
        Ok(self.http.get::<TenantList>("/x/tenants").await?.tenants)
    }

    /// One tenant.
    ///
    /// # Errors
    /// When there is none of this name, or the server does not allow it.
    pub async fn tenant(&self, name: &str) -> Result<TenantReport, ClientError> {
        let path = format!("/x/tenants/{}", encoded(name));
        self.http.get(&path).await
    }

    /// Makes a tenant.
    ///
    /// # Errors
    /// When there is one of this name, or the server refuses.
    pub async fn create_tenant(&self, request: &CreateTenant) -> Result<TenantReport, ClientError> {
        let made = self.http.call(Method::POST, "/x/tenants", Some(request));
        parse(&made.await?)
    }

    /// Replaces what holds for a tenant.
    ///
    /// # Errors
    /// When there is none of this name, or the server refuses.
    pub async fn change_tenant(
        &self,
        name: &str,
        terms: &TenantTerms,
    ) -> Result<TenantReport, ClientError> {
        let path = format!("/x/tenants/{}", encoded(name));
        parse(&self.http.call(Method::PUT, &path, Some(terms)).await?)
    }

    /// Removes a tenant without keys and sandboxes.
    ///
    /// # Errors
    /// When there is none of this name, it has some, or the server refuses.
    pub async fn remove_tenant(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/x/tenants/{}", encoded(name));
        let done = self.http.call::<()>(Method::DELETE, &path, None);
        done.await.map(drop)
    }
}
