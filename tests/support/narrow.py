"""What a person with a phone cannot read without moving a part of the page to the side."""

# Boxes that scroll to the side, what reaches beyond the window, and cells that do not say their column.
FOUND = """() => {
  const shown = (one) => { const box = one.getBoundingClientRect(); return box.width > 1 && box.height > 1 && !one.closest(".said"); };
  const said = (one) => one.tagName.toLowerCase() + (one.id ? "#" + one.id : "") + (one.className && one.className.baseVal === undefined ? "." + one.className : "") + ": " + one.textContent.slice(0, 40);
  const out = [];
  for (const one of document.querySelectorAll("main *")) {
    if (!shown(one)) continue;
    const way = getComputedStyle(one).overflowX;
    if ((way === "auto" || way === "scroll") && one.scrollWidth > one.clientWidth + 1) out.push("scrolls: " + said(one));
    if (one.matches("th, td, p, li, h2, button, a, select, input") && one.getBoundingClientRect().right > innerWidth + 1) out.push("beyond: " + said(one));
  }
  for (const table of document.querySelectorAll("main table.stacks")) {
    const heads = [...table.querySelectorAll("thead th")];
    if (heads.some(shown)) out.push("has its heads: " + said(table));
    for (const cell of table.querySelectorAll("tbody td:not([colspan])")) {
      const head = heads[[...cell.parentElement.children].indexOf(cell)];
      const name = head.querySelector(".said") ? "" : head.textContent;
      const before = getComputedStyle(cell, "::before").content;
      if (shown(cell) && name && !before.includes(name)) out.push(`does not say ${name}: ` + said(cell));
    }
  }
  return [...new Set(out)];
}"""


def troubles(page):
    """Empty: all of the page is read by scrolling down."""
    page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    return page.evaluate(FOUND)
