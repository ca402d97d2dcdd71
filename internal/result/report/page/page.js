
"use strict";
// Shows the titles in a chart at once, which browsers show only after a while, and marks their place on the chart.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

const texts = new WeakMap(); // the text of each place on a chart that has one
let pointer = null; // its last event
let hair = null; // the hairline of the chart below it

// wire makes the charts below an element answer to the pointer.
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
  hair = over.closest("svg").querySelector(".hair"); // charts of ratios have none
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
