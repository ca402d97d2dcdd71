
// Shows what the server sends: a document with places for parts, and the parts themselves, each again whenever it has changed. See package live.
const main = document.querySelector("main");
const link = document.querySelector("#link");
const parts = new Map(); // the content shown in each place
const pieces = new Map(); // what has arrived so far of incomplete parts
const fresh = new Set(); // parts that have arrived since the last rendering
const lost = "connection lost: trying again";
let ended = "";

// named returns a name by which a child of an element is found again in the element's next content.
function named(node) {
  return node.nodeName + (node.id || node.querySelector?.(":scope > summary, :scope > details > summary")?.textContent);
}

// turn gives an element the content of another. It leaves alone what stays the same, which so keeps its focus, selection and scroll position, and stays
// open.
function turn(element, next) {
  const before = new Map();
  for (const node of [...element.childNodes]) {
    if (node.nodeType === Node.TEXT_NODE && !node.data.trim()) {
      node.remove(); // blanks would come between other elements once the order changes
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
    } else if (old.nodeName !== "LIVE-PART") { // the content of a live-part is a part of its own
      for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      for (const { name } of [...old.attributes]) if (!node.hasAttribute(name) && name !== "open") old.removeAttribute(name);
      turn(old, node);
    }
  }
}

// enter fills the places in a new node.
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

// hold returns a function that scrolls the element that the reader looks at back to where it is now. Of the elements that are still there, it is the one
// nearest to the upper quarter of the window. A reader who has not scrolled looks at the top.
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
  if (focused?.isConnected) focused.focus({ preventScroll: true }); // an element that is moved loses the focus
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
