// The unmodified JavaScript SDK makes its calls against our server; run by test_js.py.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ConnectionConfig, Sandbox, SandboxManager } from "@alibaba-group/opensandbox";

const connectionConfig = new ConnectionConfig({
  domain: process.env.DOMAIN,
  apiKey: process.env.KEY,
  useServerProxy: process.env.PROXIED === "true",
});
const manager = SandboxManager.create({ connectionConfig });
let sandbox;

const text = (messages) => messages.map((one) => one.text).join("");
const refused = (status) => (error) => error.statusCode === status;

before(async () => {
  sandbox = await Sandbox.create({
    connectionConfig,
    image: "host",
    env: { GREETING: "hello" },
    metadata: { team: "js" },
    resource: { cpu: "1", memory: "512Mi" },
    timeoutSeconds: 300,
  });
});

after(async () => {
  await sandbox.kill();
  await sandbox.close();
  await manager.close();
});

test("what a sandbox tells of itself", async () => {
  const info = await sandbox.getInfo();
  assert.equal(info.id, sandbox.id);
  assert.equal(info.status.state, "Running");
  assert.equal(await sandbox.isHealthy(), true);
  const metrics = await sandbox.getMetrics();
  assert.ok(metrics.memoryTotalMiB > 0 && metrics.cpuCount > 0);
  await sandbox.renew(600);
  assert.match(await sandbox.getEndpointUrl(8080), /\/8080$/);
});

test("commands with their output and their end", async () => {
  for (const [command, stdout, stderr, code] of [
    ["echo $GREETING", "hello", "", 0],
    ["echo out; echo err >&2; exit 3", "out", "err", 3],
    ["kill -9 $$", "", "", 137],
  ]) {
    const ran = await sandbox.commands.run(command);
    assert.equal(text(ran.logs.stdout).trimEnd(), stdout);
    assert.equal(text(ran.logs.stderr).trimEnd(), stderr);
    assert.equal(ran.exitCode, code);
    assert.equal(ran.complete === undefined, code !== 0);
  }
  const options = { workingDirectory: "/usr", envs: { A: "b" }, timeoutSeconds: 20 };
  const ran = await sandbox.commands.run("pwd; echo $A", options);
  assert.deepEqual(ran.logs.stdout.map((one) => one.text.trimEnd()), ["/usr", "b"]);
  const late = await sandbox.commands.run("sleep 60", { timeoutSeconds: 1 });
  assert.ok(late.error);
  const kinds = [];
  for await (const event of sandbox.commands.runStream("echo x")) kinds.push(event.type);
  assert.deepEqual([kinds[0], kinds.at(-1)], ["init", "execution_complete"]);
  const nowhere = sandbox.commands.run("true", { workingDirectory: "/no/such" });
  await assert.rejects(nowhere, refused(400));
});

test("commands in the background", async () => {
  const { id } = await sandbox.commands.run("echo one; sleep 600", { background: true });
  assert.equal((await sandbox.commands.getCommandStatus(id)).running, true);
  let logs = await sandbox.commands.getBackgroundCommandLogs(id, 0);
  while (logs.content === "") logs = await sandbox.commands.getBackgroundCommandLogs(id, 0);
  assert.equal(logs.content, "one\n");
  assert.equal(logs.cursor, 4);
  await sandbox.commands.interrupt(id);
  const status = await sandbox.commands.getCommandStatus(id);
  assert.equal(status.running, false);
  assert.ok(status.finishedAt >= status.startedAt);
});

test("files", async () => {
  const { files } = sandbox;
  const bytes = new Uint8Array(300_000).map((_, at) => at % 251);
  await files.createDirectories([{ path: "/tmp/js/sub", mode: 755 }]);
  await files.writeFiles([
    { path: "/tmp/js/a.txt", data: "héllo\nwörld\n", mode: 640 },
    { path: "/tmp/js/sub/ü b.bin", data: bytes },
  ]);
  assert.equal(await files.readFile("/tmp/js/a.txt"), "héllo\nwörld\n");
  assert.equal(await files.readFile("/tmp/js/a.txt", { offset: 2, limit: 1 }), "wörld\n");
  assert.deepEqual(await files.readBytes("/tmp/js/sub/ü b.bin"), bytes);
  const part = await files.readBytes("/tmp/js/sub/ü b.bin", { range: "bytes=2-4" });
  assert.deepEqual([...part], [2, 3, 4]);
  let total = 0;
  for await (const piece of files.readBytesStream("/tmp/js/sub/ü b.bin")) total += piece.length;
  assert.equal(total, bytes.length);
  const info = (await files.getFileInfo(["/tmp/js/a.txt"]))["/tmp/js/a.txt"];
  assert.equal(info.mode, 640);
  const found = await files.search({ path: "/tmp/js", pattern: "*.bin" });
  assert.deepEqual(found.map((one) => one.path), ["/tmp/js/sub/ü b.bin"]);
  const listed = await files.listDirectory({ path: "/tmp/js", depth: 2 });
  assert.equal(listed.length, 3);
  const change = { path: "/tmp/js/a.txt", oldContent: "l", newContent: "L" };
  const [{ replacedCount }] = await files.replaceContentsDetailed([change]);
  assert.equal(replacedCount, 3);
  await files.setPermissions([{ path: "/tmp/js/a.txt", mode: 600, owner: "root" }]);
  await files.moveFiles([{ src: "/tmp/js/a.txt", dest: "/tmp/js/c.txt" }]);
  assert.equal(await files.readFile("/tmp/js/c.txt"), "héLLo\nwörLd\n");
  await files.deleteFiles(["/tmp/js/c.txt"]);
  await assert.rejects(files.readFile("/tmp/js/c.txt"), refused(404));
  await files.deleteDirectories(["/tmp/js"]);
});

test("the manager", async () => {
  const { items } = await manager.listSandboxInfos({ states: ["Running"], metadata: { team: "js" } });
  assert.ok(items.some((one) => one.id === sandbox.id));
  await manager.patchSandboxMetadata(sandbox.id, { more: "x" });
  assert.equal((await manager.getSandboxInfo(sandbox.id)).metadata.more, "x");
  await manager.pauseSandbox(sandbox.id);
  assert.equal((await manager.getSandboxInfo(sandbox.id)).status.state, "Paused");
  await assert.rejects(manager.pauseSandbox(sandbox.id), refused(409));
  await manager.resumeSandbox(sandbox.id);
  await manager.renewSandbox(sandbox.id, 600);
  await assert.rejects(manager.getSandboxInfo("nobody"), refused(404));
  assert.ok(Array.isArray((await manager.listSnapshots()).items));
});

test("connect finds it again", async () => {
  const again = await Sandbox.connect({ connectionConfig, sandboxId: sandbox.id });
  assert.equal(text((await again.commands.run("echo again")).logs.stdout).trimEnd(), "again");
  await again.close();
});

test("sessions", async () => {
  const session = await sandbox.commands.createSession({ workingDirectory: "/usr" });
  const run = async (command) => {
    const ran = await sandbox.commands.runInSession(session, command);
    return [text(ran.logs.stdout).trimEnd(), ran.exitCode];
  };
  assert.deepEqual(await run("export A=1; pwd"), ["/usr", 0]);
  assert.deepEqual(await run("echo $A"), ["1", 0]);
  assert.deepEqual(await run("(exit 3)"), ["", 3]);
  await sandbox.commands.deleteSession(session);
});

test("isolated sessions", async () => {
  assert.equal(typeof (await sandbox.isolation.capabilities()).available, "boolean");
  const ran = await sandbox.isolation.runOnce("echo alone", "/tmp");
  assert.equal(text(ran.logs.stdout).trimEnd(), "alone");
});
