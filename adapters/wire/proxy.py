"""Which way a request takes: straight to this machine, else as the environment says (semantics 4)."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def is_loopback(url: str) -> bool:
    """Whether ``url`` is on this machine, which no proxy of the environment can reach."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for ``url``, without its password; None if the way is straight."""
    parts, proxies = urlsplit(url), getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxy = urlsplit(found if "://" in found else f"http://{found}")
    return f"{proxy.scheme}://{proxy.hostname}" + (f":{proxy.port}" if proxy.port else "")
