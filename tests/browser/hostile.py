"""Texts that people or programs may put into any field, and that must stay texts."""

from playwright.sync_api import Page

#: Each would set `window.hostile`, or open a dialog, if a browser took it for markup or code.
TEXTS = (
    "<script>window.hostile=1</script>",
    "<img src=x onerror=window.hostile=1>",
    "<svg/onload=window.hostile=1>",
    "</title></style></textarea></script><script>window.hostile=1</script>",
    '"><iframe srcdoc="<script>parent.hostile=1</script>">',
    "javascript:window.hostile=1",
    "' onfocus=window.hostile=1 autofocus x='",
    "{{constructor.constructor('window.hostile=1')()}}",
    "${window.hostile=1}",
    "<a href=javascript:window.hostile=1>click</a>",
    "<details open ontoggle=window.hostile=1>",
    "&lt;script&gt;window.hostile=1&lt;/script&gt;",
)
#: In places where a name allows fewer characters.
NAME_LIKE = "javascript:window.hostile"


def assert_harmless(page: Page) -> None:
    """No script has run, and no element was made of a text."""
    assert page.evaluate("window.hostile") is None
    made = page.evaluate(
        "[...document.querySelectorAll('script, iframe, object, embed, img, [onerror], [onload], [onfocus]')]"
        ".filter(one => !one.src?.startsWith(location.origin + '/dashboard/')).map(one => one.outerHTML)"
    )
    assert made == []
    links = page.evaluate("[...document.querySelectorAll('a[href]')].map(one => one.protocol)")
    assert not [protocol for protocol in links if protocol not in ("http:", "https:")]
