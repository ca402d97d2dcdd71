
"use strict";
// Shows at once what browsers show of a title after a while, and where on the chart it is.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

const texts = new WeakMap(); // of the places on charts that have one
let pointer = null; // its last event
let hair = null; // of the chart below it

// wire has the charts below an element answer to the pointer.
function wire(root) {
  for (const hit of root.querySelectorAll("svg.plot .hit")) {
    texts.set(hit, hit.textContent);
    hit.textContent = "";
  }
}

function point(at) {
  hair?.setAttribute("x1", at);
  hair?.setAttribute("x2", at);
}

// tell shows the text of the place that the pointer is over.
function tell(over) {
  point(-9);
  const text = texts.get(over);
  tip.hidden = !text;
  if (!text) return;
  hair = over.closest("svg").querySelector(".hair"); // ratios have none
  point(over.x.baseVal.value + over.width.baseVal.value / 2);
  tip.textContent = text;
  const right = Math.min(pointer.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 4);
  tip.style.left = Math.max(right, 4) + "px";
  tip.style.top = Math.max(pointer.clientY - tip.offsetHeight - 14, 4) + "px";
}

document.addEventListener("pointermove", (event) => {
  pointer = event;
  tell(event.target);
});
document.documentElement.addEventListener("pointerleave", () => {
  pointer = null;
  tell(null);
});

wire(document);
