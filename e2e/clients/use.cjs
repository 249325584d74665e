// What both clients on Node do once they are connected; use() gives what they saw. Judging that is the test's part.

/** Rung by a notification; `rung()` waits for the next one, and gives `false` when none comes. */
class Bell {
  #times = 0;
  #wake = () => {};

  ring() {
    this.#times += 1;
    this.#wake(true);
  }

  async rung() {
    if (this.#times === 0) {
      const came = await new Promise((resolve) => {
        this.#wake = resolve;
        setTimeout(() => resolve(false), 10_000).unref();
      });
      if (!came) return false;
    }
    this.#times = 0;
    return true;
  }
}

/** Changes the list of tools, and looks at it whenever the crib says that it has changed. */
async function changeSeen(client, call, bell) {
  await call({ name: "fx__test_trigger_tool_change", arguments: {} });
  while (await bell.rung()) {
    const { tools } = await client.listTools();
    if (tools.some((tool) => tool.name.includes("toggled"))) return true;
  }
  return false;
}

/** `call(params, onprogress)` is where the two SDKs differ. */
async function use(client, call, bell) {
  let steps = 0;
  const listed = await client.listTools();
  const echoed = await call({ name: "fx__echo", arguments: { text: "from node" } });
  const read = await client.readResource({ uri: "test://static-text" });
  const prompt = await client.getPrompt({ name: "fx__test_simple_prompt" });
  await call({ name: "fx__sleep", arguments: { ms: 200 } }, () => (steps += 1));
  return {
    server: client.getServerVersion()?.name,
    tools: listed.tools.map((tool) => tool.name),
    echo: echoed.content[0].text,
    resource: read.contents[0].text,
    prompt: prompt.messages[0].content.text,
    progress: steps,
    changed: await changeSeen(client, call, bell),
  };
}

module.exports = { Bell, use };
