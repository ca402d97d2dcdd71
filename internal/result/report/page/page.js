
"use strict";
// Shows at once what browsers show of a title after a while, and where on the chart it is.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

// wire has the charts below an element answer to the pointer.
function wire(root) {
  for (const plot of root.querySelectorAll("svg.plot")) wirePlot(plot);
}

function wirePlot(plot) {
  const hair = plot.querySelector(".hair"); // ratios have none
  const point = (at) => {
    hair?.setAttribute("x1", at);
    hair?.setAttribute("x2", at);
  };
  const texts = new Map();
  for (const hit of plot.querySelectorAll(".hit")) {
    texts.set(hit, hit.textContent);
    hit.textContent = "";
  }
  const hide = () => {
    tip.hidden = true;
    point(-9);
  };
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("pointermove", (event) => {
    const text = texts.get(event.target);
    if (!text) return hide();
    const at = event.target.x.baseVal.value + event.target.width.baseVal.value / 2;
    point(at);
    tip.textContent = text;
    tip.hidden = false;
    const right = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 4);
    tip.style.left = Math.max(right, 4) + "px";
    tip.style.top = Math.max(event.clientY - tip.offsetHeight - 14, 4) + "px";
  });
}

wire(document);
