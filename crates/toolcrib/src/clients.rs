//! Config files of MCP clients: read to fill `toolcrib.yaml`, written to point a client at the crib.
