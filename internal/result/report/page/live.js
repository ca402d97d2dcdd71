
// Shows what the server sends: a document with places for parts, and the parts, again when they have changed. See package live.
const main = document.querySelector("main");
const link = document.querySelector("#link");
const parts = new Map(); // what is shown, by place
const pieces = new Map(); // what has come of parts that are not whole
let fresh = new Set(); // parts that have come since the last rendering was shown

function fill(root) {
  for (const place of root.querySelectorAll("live-part[id]")) {
    if (!place.hasChildNodes() && parts.has(place.id)) put(place, place.id);
  }
}

// put replaces the content of a place. What is open stays open, and what has the focus keeps it.
function put(place, id) {
  const old = [...place.querySelectorAll("details, summary, a, [tabindex]")];
  const open = old.map((e) => e.open);
  const at = old.indexOf(document.activeElement);
  const wide = [...place.querySelectorAll(".wide")].map((e) => e.scrollLeft);
  place.innerHTML = parts.get(id);
  wire(place);
  fill(place);
  const now = [...place.querySelectorAll("details, summary, a, [tabindex]")];
  if (now.length === old.length) {
    now.forEach((e, i) => { if (open[i]) e.open = true; });
    now[at]?.focus({ preventScroll: true });
  }
  [...place.querySelectorAll(".wide")].forEach((e, i) => { e.scrollLeft = wide[i] ?? 0; });
}

function show() {
  tip.hidden = true;
  if (fresh.has("")) {
    put(main, "");
  } else {
    for (const id of fresh) {
      const place = document.getElementById(id);
      if (place) put(place, id);
    }
  }
  fresh = new Set();
}

function watch() {
  const stream = new EventSource("stream");
  stream.addEventListener("open", () => {
    link.textContent = "live";
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
  stream.addEventListener("end", () => {
    stream.close();
    link.textContent = "the run has ended";
  });
  stream.addEventListener("error", () => {
    link.textContent = "connection lost: trying again";
    if (stream.readyState === EventSource.CLOSED) setTimeout(watch, 10000); // it was refused
  });
}

watch();
