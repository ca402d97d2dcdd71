
// Shows what the server sends: a document with places for parts, and the parts, again when they have changed. See package live.
const main = document.querySelector("main");
const link = document.querySelector("#link");
const parts = new Map(); // what is shown, by place
const pieces = new Map(); // what has come of parts that are not whole
const fresh = new Set(); // parts that have come since the last rendering was shown
const lost = "connection lost: trying again";
let ended = "";

// named says which of an element's children is the same in its next content.
function named(node) {
  return node.nodeName + (node.id || node.querySelector?.(":scope > summary, :scope > details > summary")?.textContent);
}

// turn makes an element's content that of another. What stays the same is left alone, and with it the focus and what is selected, open and scrolled.
function turn(element, next) {
  const before = new Map();
  for (const node of [...element.childNodes]) {
    if (node.nodeType === Node.TEXT_NODE && !node.data.trim()) {
      node.remove(); // it would stand between others in another order
      continue;
    }
    const name = named(node);
    if (!before.has(name)) before.set(name, []);
    before.get(name).push(node);
  }
  const pairs = [...next.childNodes].map((node) => [node, before.get(named(node))?.shift()]);
  for (const node of [...before.values()].flat()) node.remove();
  let at = element.firstChild;
  for (const [node, old] of pairs) {
    if (old === undefined) {
      element.insertBefore(node, at);
      enter(node);
      continue;
    }
    if (old === at) at = at.nextSibling;
    else element.insertBefore(old, at);
    if (old.nodeName === "svg") {
      old.replaceWith(node);
      wire(node);
    } else if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== node.data) old.data = node.data;
    } else if (old.nodeName !== "LIVE-PART") { // which has content of its own
      for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      for (const { name } of [...old.attributes]) if (!node.hasAttribute(name) && name !== "open") old.removeAttribute(name);
      turn(old, node);
    }
  }
}

// enter fills the places in what is new.
function enter(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return;
  wire(node);
  for (const place of node.querySelectorAll("live-part")) put(place);
  if (node.nodeName === "LIVE-PART") put(node);
}

function put(place) {
  if (!parts.has(place.id)) return;
  const next = document.createElement("template");
  next.innerHTML = parts.get(place.id);
  turn(place, next.content);
}

// hold returns a function that scrolls what the reader looks at back to where it is now: of what is still there, the nearest to the upper quarter of the
// window. A reader who has not scrolled looks at the top.
function hold() {
  if (scrollY === 0) return () => {};
  const top = (node) => node.getBoundingClientRect().top;
  const seen = [...main.querySelectorAll("h2, h3, figure, p, tr, summary")].filter((node) => node.checkVisibility()).map((node) => [node, top(node)]);
  const eye = innerHeight / 4;
  seen.sort(([, a], [, b]) => Math.abs(a - eye) - Math.abs(b - eye));
  return () => {
    const kept = seen.find(([node]) => node.isConnected && node.checkVisibility());
    if (kept) scrollBy({ top: top(kept[0]) - kept[1], behavior: "instant" });
  };
}

function show() {
  const focused = document.activeElement;
  const back = hold();
  if (fresh.delete("")) put(main);
  for (const id of fresh) {
    const place = document.getElementById(id);
    if (place) put(place);
  }
  fresh.clear();
  back();
  if (focused?.isConnected) focused.focus({ preventScroll: true }); // what is moved loses it
  if (pointer) tell(document.elementFromPoint(pointer.clientX, pointer.clientY));
}

function watch() {
  const stream = new EventSource("stream");
  stream.addEventListener("open", () => {
    link.textContent = "live";
    link.classList.remove("lost");
    ended = "";
    pieces.clear();
  });
  stream.addEventListener("part", (event) => {
    const { id, html, more } = JSON.parse(event.data);
    const text = (pieces.get(id) ?? "") + html;
    if (more) {
      pieces.set(id, text);
      return;
    }
    pieces.delete(id);
    parts.set(id, text);
    fresh.add(id);
  });
  stream.addEventListener("shown", show);
  stream.addEventListener("end", (event) => {
    ended = "the run has ended";
    if (JSON.parse(event.data).another) ended += ": waiting for the next of the experiment";
    else stream.close();
    link.textContent = ended;
  });
  stream.addEventListener("error", () => {
    link.textContent = ended || lost;
    link.classList.toggle("lost", !ended);
    if (stream.readyState === EventSource.CLOSED) setTimeout(watch, 10000); // it was refused
  });
}

watch();
