"""HTTP/1.1 and WebSockets on asyncio, for an ASGI application: every wait and every buffer has a bound."""
