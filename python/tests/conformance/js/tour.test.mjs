// All that the unmodified JavaScript SDK can ask of the lifecycle API, well and badly; run by
// test_clients.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { ConnectionConfig, Sandbox, SandboxManager } from "@alibaba-group/opensandbox";

const NOBODY = "00000000-0000-4000-8000-000000000000";
const config = (apiKey) =>
  new ConnectionConfig({ domain: process.env.DOMAIN, apiKey });
const connectionConfig = config(process.env.KEY);
const manager = SandboxManager.create({ connectionConfig });
const usual = { connectionConfig, image: "host", timeoutSeconds: 300 };
const create = (more) => Sandbox.create({ ...usual, ...more });

async function refused(name, call, code) {
  await assert.rejects(call, (error) => {
    assert.equal(`${error.statusCode} ${error.error?.code}`, code, name);
    return true;
  });
}

async function readySnapshot(id, name) {
  const taken = await manager.createSnapshot(id, { name });
  let state = taken.status.state;
  while (state === "Creating") {
    await sleep(20);
    state = (await manager.getSnapshot(taken.id)).status.state;
  }
  assert.equal(state, "Ready");
  return taken.id;
}

test("outbound rules and credentials are read and changed", async () => {
  const target = "a.example";
  const rule = { action: "allow", target };
  const networkPolicy = { defaultAction: "deny", egress: [rule] };
  const sandbox = await create({ networkPolicy, credentialProxy: { enabled: true } });
  const targets = async () => (await sandbox.getEgressPolicy()).egress.map((one) => one.target);
  await sandbox.patchEgressRules([{ action: "deny", target: "b.example" }]);
  assert.deepEqual(await targets(), ["b.example", target]);
  await sandbox.deleteEgressRules(["b.example", "c.example"]);
  assert.deepEqual(await targets(), [target]);
  const vault = sandbox.credentialVault;
  const credential = (name) => ({ name, source: { type: "inline", value: "hunter2-hunter2" } });
  const binding = {
    name: "api",
    match: { hosts: [target] },
    auth: { type: "bearer", credential: "key" },
  };
  const made = await vault.create({ credentials: [credential("key")], bindings: [binding] });
  assert.equal(made.revision, 1);
  const more = { expectedRevision: 1, credentials: { add: [credential("new")] } };
  assert.equal((await vault.patch(more)).revision, 2);
  assert.deepEqual((await vault.listCredentials()).map((one) => one.name), ["key", "new"]);
  assert.equal((await vault.getCredential("new")).revision, 2);
  assert.equal((await vault.listBindings()).length, 1);
  assert.equal((await vault.getBinding("api")).auth.type, "bearer");
  assert.ok(!JSON.stringify(await vault.get()).includes("hunter2"));
  await vault.delete();
  await assert.rejects(() => vault.get(), { statusCode: 404 });
  await sandbox.kill();
  await sandbox.close();
});

test("what should work works", async () => {
  const sandbox = await create({ metadata: { team: "tour" } });
  const filter = { states: ["Running", "paused"], metadata: { team: "tour" }, page: 1, pageSize: 200 };
  const listed = await manager.listSandboxInfos(filter);
  assert.ok(listed.items.some((one) => one.id === sandbox.id));
  await sandbox.patchMetadata({ team: null, more: "x" });
  assert.deepEqual((await sandbox.getInfo()).metadata, { more: "x" });
  await manager.pauseSandbox(sandbox.id);
  assert.equal((await manager.getSandboxInfo(sandbox.id)).status.state, "Paused");
  await manager.resumeSandbox(sandbox.id);
  await manager.renewSandbox(sandbox.id, 600);
  const until = Math.floor(Date.now() / 1000) + 60;
  const signed = await sandbox.getSignedEndpoint(8080, until);
  assert.deepEqual(signed.headers ?? {}, {});
  const name = `tour-${sandbox.id}`;
  const snapshot = await readySnapshot(sandbox.id, name);
  const wanted = { sandboxId: sandbox.id, name, states: ["Ready"], page: 1, pageSize: 9 };
  assert.deepEqual((await manager.listSnapshots(wanted)).items.map((one) => one.id), [snapshot]);
  const { image, ...others } = usual;
  const made = await Sandbox.create({ ...others, snapshotId: snapshot });
  await refused("in use", () => manager.deleteSnapshot(snapshot), "409 SNAPSHOT::DELETE_CONFLICT");
  for (const one of [made, sandbox]) {
    await one.kill();
    await one.close();
  }
  await manager.deleteSnapshot(snapshot);
});

test("an end is told by its state", async () => {
  for (const [state, id] of Object.entries(JSON.parse(process.env.ENDED))) {
    const { status } = await manager.getSandboxInfo(id);
    assert.equal(status.state, state);
    assert.ok(status.reason && status.message);
    const { items } = await manager.listSandboxInfos({ states: [state] });
    assert.ok(items.some((one) => one.id === id));
  }
});

test("what is refused says why", async () => {
  const paused = await create({});
  const eternal = await create({ timeoutSeconds: null });
  await manager.pauseSandbox(paused.id);
  const gone = "404 DOCKER::SANDBOX_NOT_FOUND";
  const bad = "400 SANDBOX::INVALID_PARAMETER";
  const strange = { action: "allow", target: "a b" };
  const host = { name: "v", host: { path: "/etc" }, mountPath: "/m" };
  const pool = process.env.POOL;
  for (const [name, call, code] of [
    ["image", () => create({ image: "no/such:image" }), "500 DOCKER::SANDBOX_IMAGE_PULL_FAILED"],
    ["label", () => create({ metadata: { "-a": "b" } }), "400 SANDBOX::INVALID_METADATA_LABEL"],
    ["cpu", () => create({ resource: { cpu: "much" } }), bad],
    ["secure", () => create({ secureAccess: true }), bad],
    ["policy", () => create({ networkPolicy: { egress: [strange] } }), bad],
    ["volume", () => create({ volumes: [host] }), "400 VOLUME::HOST_PATH_NOT_ALLOWED"],
    ["entrypoint", () => create({ entrypoint: [""] }), "400 DOCKER::INVALID_ENTRYPOINT"],
    [
      "snapshot",
      () => Sandbox.create({ connectionConfig, snapshotId: NOBODY, timeoutSeconds: 300 }),
      "404 SNAPSHOT::NOT_FOUND",
    ],
    [
      "pool",
      () => create({ extensions: { poolRef: "none" } }),
      "404 KUBERNETES::POOL_NOT_FOUND",
    ],
    [
      "full pool",
      () => create({ extensions: { poolRef: pool } }),
      "429 KUBERNETES::POOL_CAPACITY_EXHAUSTED",
    ],
    ["get", () => manager.getSandboxInfo(NOBODY), gone],
    ["kill", () => manager.killSandbox(NOBODY), gone],
    ["pause", () => manager.pauseSandbox(NOBODY), gone],
    ["resume", () => manager.resumeSandbox(NOBODY), gone],
    ["renew", () => manager.renewSandbox(NOBODY, 60), gone],
    ["patch", () => manager.patchSandboxMetadata(NOBODY, {}), gone],
    ["snap", () => manager.createSnapshot(NOBODY, {}), gone],
    ["connect", () => Sandbox.connect({ connectionConfig, sandboxId: NOBODY }), gone],
    ["pause twice", () => manager.pauseSandbox(paused.id), "409 DOCKER::SANDBOX_NOT_RUNNING"],
    ["resume", () => manager.resumeSandbox(eternal.id), "409 DOCKER::SANDBOX_NOT_PAUSED"],
    ["renew eternal", () => eternal.renew(60), "409 DOCKER::INVALID_EXPIRATION"],
    ["reserved", () => eternal.patchMetadata({ "opensandbox.io/a": null }), "400 INVALID_METADATA_LABEL"],
    ["snap paused", () => manager.createSnapshot(paused.id), "409 SNAPSHOT::INVALID_SOURCE_STATE"],
    ["port", () => eternal.getEndpoint(0), "400 DOCKER::INVALID_PORT"],
    ["expired", () => eternal.getSignedEndpoint(80, 1), bad],
    ["get snapshot", () => manager.getSnapshot(NOBODY), "404 SNAPSHOT::NOT_FOUND"],
    ["delete snapshot", () => manager.deleteSnapshot(NOBODY), "404 SNAPSHOT::NOT_FOUND"],
    ["page", () => manager.listSandboxInfos({ pageSize: 201 }), "422 UNEXPECTED_RESPONSE"],
    ["page", () => manager.listSnapshots({ pageSize: 201 }), "422 UNEXPECTED_RESPONSE"],
    ["egress", () => eternal.patchEgressRules([strange]), "400 UNEXPECTED_RESPONSE"],
  ]) {
    await refused(name, call, code);
  }
  for (const one of [paused, eternal]) {
    await one.kill();
    await one.close();
  }
});

test("a tenant has what it may have", async () => {
  const mine = { connectionConfig: config(process.env.TENANTS_KEY), image: "host" };
  const tenants = SandboxManager.create({ connectionConfig: mine.connectionConfig });
  const own = await Sandbox.create({ ...mine, timeoutSeconds: 300 });
  const foreign = process.env.FOREIGN;
  const gone = "404 DOCKER::SANDBOX_NOT_FOUND";
  for (const [name, call, code] of [
    ["one more", () => Sandbox.create(mine), "403 QUOTA::SANDBOXES"],
    ["snapshot", () => tenants.createSnapshot(own.id), "403 QUOTA::SNAPSHOTS"],
    ["get", () => tenants.getSandboxInfo(foreign), gone],
    ["kill", () => tenants.killSandbox(foreign), gone],
  ]) {
    await refused(name, call, code);
  }
  await own.kill();
  await own.close();
  await tenants.close();
  await manager.close();
});
