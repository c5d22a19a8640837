//! Pure. The codes of the lifecycle API's errors. Clients branch on them; none ever changes.

/// No key came with a request that needs one.
pub const MISSING_API_KEY: &str = "MISSING_API_KEY";
/// The key that came is not the server's.
pub const INVALID_API_KEY: &str = "INVALID_API_KEY";
/// The key that came is this server's, and its time is over.
pub const API_KEY_EXPIRED: &str = "API_KEY_EXPIRED";
/// The key is a tenant's, and only admins may do that.
pub const ADMIN_ONLY: &str = "ADMIN_ONLY";
/// The key made more requests than its rate allows.
pub const RATE_LIMITED: &str = "RATE_LIMITED";
/// There is no key of this id.
pub const KEY_NOT_FOUND: &str = "KEY_NOT_FOUND";
/// There is no tenant of this name.
pub const TENANT_NOT_FOUND: &str = "TENANT_NOT_FOUND";
/// There is a tenant of this name already.
pub const TENANT_ALREADY_EXISTS: &str = "TENANT_ALREADY_EXISTS";
/// The tenant has keys or sandboxes.
pub const TENANT_IN_USE: &str = "TENANT_IN_USE";
/// There are as many keys or tenants as there may be.
pub const ACCESS_LIMIT_REACHED: &str = "ACCESS_LIMIT_REACHED";
/// There is no approval of this id.
pub const APPROVAL_NOT_FOUND: &str = "APPROVAL::NOT_FOUND";
/// Somebody decided already, or its time is over.
pub const APPROVAL_NOT_PENDING: &str = "APPROVAL::NOT_PENDING";
/// Nothing waits for the decision any more.
pub const APPROVAL_EXPIRED: &str = "APPROVAL::EXPIRED";
/// The tenant has as many sandboxes as it may.
pub const QUOTA_SANDBOXES: &str = "QUOTA::SANDBOXES";
/// The tenant's sandboxes have as much processor time as they may.
pub const QUOTA_CPU: &str = "QUOTA::CPU";
/// The tenant's sandboxes have as much memory as they may.
pub const QUOTA_MEMORY: &str = "QUOTA::MEMORY";
/// The tenant's sandboxes have as much disk as they may.
pub const QUOTA_DISK: &str = "QUOTA::DISK";
/// The tenant has as many snapshots as it may.
pub const QUOTA_SNAPSHOTS: &str = "QUOTA::SNAPSHOTS";
/// Too many requests without the key came from one address.
pub const TOO_MANY_FAILURES: &str = "TOO_MANY_FAILURES";
/// Neither the server's key nor this sandbox's token came with a proxied request.
pub const MISSING_OR_INVALID_SECURE_ACCESS: &str = "MISSING_OR_INVALID_SECURE_ACCESS";
/// The signature of an address is none of this server's for this port.
pub const SIGNED_ADDRESS_INVALID: &str = "SIGNED_ADDRESS_INVALID";
/// The time of a signed address is over.
pub const SIGNED_ADDRESS_EXPIRED: &str = "SIGNED_ADDRESS_EXPIRED";
/// A web page of a foreign origin may not use this server.
pub const ORIGIN_NOT_ALLOWED: &str = "ORIGIN_NOT_ALLOWED";
/// The `Host` header names a host that this server is not.
pub const HOST_NOT_ALLOWED: &str = "HOST_NOT_ALLOWED";
/// The request is not HTTP that has one reading.
pub const BAD_REQUEST: &str = "BAD_REQUEST";
/// No such route.
pub const NOT_FOUND: &str = "NOT_FOUND";
/// The route exists, with other methods.
pub const METHOD_NOT_ALLOWED: &str = "METHOD_NOT_ALLOWED";
/// The body is larger than the server takes.
pub const BODY_TOO_LARGE: &str = "BODY_TOO_LARGE";
/// The body did not arrive in time.
pub const BODY_TIMEOUT: &str = "BODY_TIMEOUT";

/// The operator has switched this off.
pub const FEATURE_DISABLED: &str = "FEATURE_DISABLED";
/// The settings that were read again cannot be used; the server goes on with those it has.
pub const SETTINGS_UNUSABLE: &str = "SETTINGS_UNUSABLE";

/// No such sandbox.
pub const SANDBOX_NOT_FOUND: &str = "DOCKER::SANDBOX_NOT_FOUND";
/// The image is neither in the store nor to be had.
pub const IMAGE_PULL_FAILED: &str = "DOCKER::SANDBOX_IMAGE_PULL_FAILED";
/// A step of the sandbox's start failed.
pub const START_FAILED: &str = "DOCKER::SANDBOX_START_FAILED";
/// The sandbox could not be removed; the server tries on.
pub const DELETE_FAILED: &str = "DOCKER::SANDBOX_DELETE_FAILED";
/// The verb needs a running sandbox.
pub const NOT_RUNNING: &str = "DOCKER::SANDBOX_NOT_RUNNING";
/// The sandbox could not be paused.
pub const PAUSE_FAILED: &str = "DOCKER::SANDBOX_PAUSE_FAILED";
/// The verb needs a paused sandbox.
pub const NOT_PAUSED: &str = "DOCKER::SANDBOX_NOT_PAUSED";
/// The sandbox could not be resumed.
pub const RESUME_FAILED: &str = "DOCKER::SANDBOX_RESUME_FAILED";
/// The asked expiry is no future moment, or the sandbox never expires.
pub const INVALID_EXPIRATION: &str = "DOCKER::INVALID_EXPIRATION";
/// The entrypoint cannot be run as it stands.
pub const INVALID_ENTRYPOINT: &str = "DOCKER::INVALID_ENTRYPOINT";
/// No port has this number.
pub const INVALID_PORT: &str = "DOCKER::INVALID_PORT";
/// The runtime does not answer.
pub const RUNTIME_UNAVAILABLE: &str = "DOCKER::INITIALIZATION_ERROR";

/// A parameter is understood but not acceptable.
pub const INVALID_PARAMETER: &str = "SANDBOX::INVALID_PARAMETER";
/// A metadata key or value breaks the label rules.
pub const INVALID_METADATA_LABEL: &str = "SANDBOX::INVALID_METADATA_LABEL";
/// A metadata patch touches a reserved key (this one has no area on the wire).
pub const RESERVED_METADATA_LABEL: &str = "INVALID_METADATA_LABEL";
/// The metadata filter of a list is no query text.
pub const INVALID_METADATA_FORMAT: &str = "INVALID_METADATA_FORMAT";
/// This server does not do that.
pub const API_NOT_SUPPORTED: &str = "SANDBOX::API_NOT_SUPPORTED";
/// The server holds as many sandboxes as it may.
pub const LIMIT_REACHED: &str = "SANDBOX::LIMIT_REACHED";
/// The fault is the server's.
pub const INTERNAL_ERROR: &str = "SANDBOX::INTERNAL_ERROR";

/// No such snapshot.
pub const SNAPSHOT_NOT_FOUND: &str = "SNAPSHOT::NOT_FOUND";
/// The server takes no snapshots.
pub const SNAPSHOT_NOT_IMPLEMENTED: &str = "SNAPSHOT::NOT_IMPLEMENTED";
/// The snapshot is still being taken, or nothing came of it.
pub const SNAPSHOT_NOT_READY: &str = "SNAPSHOT::NOT_READY";
/// A snapshot that is being taken cannot be removed.
pub const SNAPSHOT_INVALID_STATE: &str = "SNAPSHOT::INVALID_STATE";
/// A snapshot is taken of a running sandbox only.
pub const SNAPSHOT_INVALID_SOURCE_STATE: &str = "SNAPSHOT::INVALID_SOURCE_STATE";
/// No sandbox can be made of what is kept of the snapshot.
pub const SNAPSHOT_INVALID_RESTORE_CONFIG: &str = "SNAPSHOT::INVALID_RESTORE_CONFIG";
/// Sandboxes or other snapshots stand on the snapshot.
pub const SNAPSHOT_DELETE_CONFLICT: &str = "SNAPSHOT::DELETE_CONFLICT";
/// The sandbox is one of which no snapshot can be taken.
pub const SNAPSHOT_PREFLIGHT_FAILED: &str = "SNAPSHOT::RUNTIME_PREFLIGHT_FAILED";
/// The server holds as many snapshots as it may. One of our own.
pub const SNAPSHOT_LIMIT_REACHED: &str = "SNAPSHOT::LIMIT_REACHED";
/// What was sent is no OCI image, is damaged, or holds what may not be in one. One of our own.
pub const SNAPSHOT_IMAGE_INVALID: &str = "SNAPSHOT::IMAGE_INVALID";
/// The image is for other machines. One of our own.
pub const SNAPSHOT_IMAGE_PLATFORM: &str = "SNAPSHOT::IMAGE_PLATFORM";
/// The image is larger than a snapshot may be. One of our own.
pub const SNAPSHOT_IMAGE_TOO_LARGE: &str = "SNAPSHOT::IMAGE_TOO_LARGE";
/// The image did not arrive whole. One of our own.
pub const SNAPSHOT_IMAGE_BROKEN_OFF: &str = "SNAPSHOT::IMAGE_BROKEN_OFF";
/// The host's own system is no part of the snapshot. One of our own.
pub const SNAPSHOT_STANDS_ON_HOST: &str = "SNAPSHOT::STANDS_ON_HOST";
/// The snapshot holds what an image has no word for. One of our own.
pub const SNAPSHOT_NOT_EXPORTABLE: &str = "SNAPSHOT::NOT_EXPORTABLE";
/// As many images come and go as may at once. One of our own.
pub const SNAPSHOT_TRANSFERS_BUSY: &str = "SNAPSHOT::TRANSFERS_BUSY";
/// The host could not pack or unpack an image. One of our own.
pub const SNAPSHOT_TRANSFER_FAILED: &str = "SNAPSHOT::TRANSFER_FAILED";
/// The sandbox has no such layer. One of our own.
pub const LAYER_NOT_FOUND: &str = "LAYER::NOT_FOUND";
/// Processes of the sandbox use the files that were to be sealed. One of our own.
pub const LAYER_FILES_IN_USE: &str = "LAYER::FILES_IN_USE";
/// A command runs in the sandbox that was to start anew. One of our own.
pub const LAYER_SANDBOX_BUSY: &str = "LAYER::SANDBOX_BUSY";
/// As many layers are compared as may be at once, of this sandbox, for this tenant or in all. One
/// of our own.
pub const LAYER_COMPARISONS_BUSY: &str = "LAYER::COMPARISONS_BUSY";
/// This host seals no layers. One of our own.
pub const LAYER_NOT_SUPPORTED: &str = "LAYER::NOT_SUPPORTED";
/// The layer could not be sealed, or no sandbox be started from it. One of our own.
pub const LAYER_FAILED: &str = "LAYER::FAILED";
/// No such pool.
pub const POOL_NOT_FOUND: &str = "KUBERNETES::POOL_NOT_FOUND";
/// There is a pool of this name already.
pub const POOL_ALREADY_EXISTS: &str = "KUBERNETES::POOL_ALREADY_EXISTS";
/// All sandboxes of the pool are taken.
pub const POOL_CAPACITY_EXHAUSTED: &str = "KUBERNETES::POOL_CAPACITY_EXHAUSTED";
/// The server has no templates.
pub const TEMPLATE_NOT_SUPPORTED: &str = "FSB::API_NOT_SUPPORTED";
/// Two volumes of one sandbox have the same name.
pub const DUPLICATE_VOLUME: &str = "VOLUME::DUPLICATE_NAME";
/// A volume cannot appear at this place of a sandbox.
pub const INVALID_MOUNT_PATH: &str = "VOLUME::INVALID_MOUNT_PATH";
/// The part of a volume leads out of it, or is no folder of it.
pub const INVALID_SUB_PATH: &str = "VOLUME::INVALID_SUB_PATH";
/// The path of the host is none that this server reads.
pub const INVALID_HOST_PATH: &str = "VOLUME::INVALID_HOST_PATH";
/// Host paths are not on the allow-list.
pub const HOST_PATH_NOT_ALLOWED: &str = "VOLUME::HOST_PATH_NOT_ALLOWED";
/// There is nothing at the path of the host.
pub const HOST_PATH_NOT_FOUND: &str = "VOLUME::HOST_PATH_NOT_FOUND";
/// The folder of the host was missing and could not be made.
pub const HOST_PATH_CREATE_FAILED: &str = "VOLUME::HOST_PATH_CREATE_FAILED";
/// There is no named volume of this name.
pub const VOLUME_NOT_FOUND: &str = "VOLUME::PVC_NOT_FOUND";
/// A named volume could not be made or opened.
pub const VOLUME_UNUSABLE: &str = "VOLUME::PVC_INSPECT_FAILED";
/// A named volume is mounted by a sandbox. One of our own.
pub const VOLUME_IN_USE: &str = "VOLUME::IN_USE";
/// The runtime has no such kind of volume.
pub const UNSUPPORTED_VOLUME: &str = "VOLUME::UNSUPPORTED_BACKEND";
/// The asked part of the diagnostics does not exist.
pub const DIAGNOSTICS_SCOPE_UNSUPPORTED: &str = "DIAGNOSTICS_SCOPE_UNSUPPORTED";

/// Nothing in the sandbox took the connection.
pub const BACKEND_CONNECTION_FAILED: &str = "BACKEND_CONNECTION_FAILED";
/// The program in the sandbox broke off or answered no HTTP.
pub const BACKEND_RESPONSE_FAILED: &str = "BACKEND_RESPONSE_FAILED";
/// The program in the sandbox did not answer in time.
pub const BACKEND_TIMEOUT: &str = "BACKEND_TIMEOUT";
/// As many streams lead into the sandbox as may at once.
pub const BACKEND_STREAMS_BUSY: &str = "BACKEND_STREAMS_BUSY";

/// The idempotency key is empty, too long or no plain text.
pub const INVALID_IDEMPOTENCY_KEY: &str = "INVALID_IDEMPOTENCY_KEY";
/// The idempotency key was used for another request.
pub const IDEMPOTENCY_KEY_REUSED: &str = "IDEMPOTENCY_KEY_REUSED";
/// The command was begun and its sandbox ended before its outcome was known.
pub const COMMAND_OUTCOME_UNKNOWN: &str = "COMMAND_OUTCOME_UNKNOWN";
/// The command ended, and its result is no longer kept.
pub const COMMAND_RESULT_EXPIRED: &str = "COMMAND_RESULT_EXPIRED";
