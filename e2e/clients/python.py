"""The Python SDK as a client of the crib: `python.py ERA http URL` or `python.py ERA stdio COMMAND [ARGUMENT...]`.

Does what a client does and prints one line of JSON: what it saw. Judging that is the test's part.
"""

import json
import sys
from collections.abc import AsyncIterable

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def main(era: str, kind: str, place: str, *arguments: str) -> None:
    server = place if kind == "http" else StdioServerParameters(command=place, args=list(arguments))
    ring, bell = anyio.create_memory_object_stream[None](100)

    async def heard(message: object) -> None:
        # The SDK wraps notifications in one era and not in the other.
        if "ToolListChanged" in type(getattr(message, "root", message)).__name__:
            ring.send_nowait(None)

    mode = "legacy" if era == "legacy" else "auto"
    async with Client(server, mode=mode, message_handler=heard, read_timeout_seconds=20) as client:
        print(json.dumps(await use(client, era, bell)))


async def use(client: Client, era: str, bell: AsyncIterable[None]) -> dict[str, object]:
    steps: list[float] = []

    async def progressed(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    listed = await client.list_tools()
    echoed = await client.call_tool("fx__echo", {"text": "from python"})
    read = await client.read_resource("test://static-text")
    prompt = await client.get_prompt("fx__test_simple_prompt")
    await client.call_tool("fx__sleep", {"ms": 200}, progress_callback=progressed)
    seen = False
    with anyio.move_on_after(10):
        if era == "legacy":
            seen = await change_seen(client, bell)
        else:
            async with client.listen(tools_list_changed=True) as stream:
                seen = await change_seen(client, stream)
    return {
        "protocol": client.protocol_version,
        "server": client.server_info and client.server_info.name,
        "tools": [tool.name for tool in listed.tools],
        "echo": echoed.content[0].text,
        "resource": read.contents[0].text,
        "prompt": prompt.messages[0].content.text,
        "progress": len(steps),
        "changed": seen,
    }


async def change_seen(client: Client, news: AsyncIterable[object]) -> bool:
    """Changes the list of tools, and looks at it whenever the crib says that it has changed."""
    await client.call_tool("fx__test_trigger_tool_change")
    async for _ in news:
        if any("toggled" in tool.name for tool in (await client.list_tools()).tools):
            return True
    return False


anyio.run(main, *sys.argv[1:])
