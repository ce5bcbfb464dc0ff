// Which run is shown and how; what happens when one points and clicks.

const LAYERS = { messages: "messages", wakes: "wake-ups", births: "births" };
const state = { view: 0, axis: "steps", zoom: null, layers: { messages: true, wakes: true, births: true } };
const all = selector => [...document.querySelectorAll(selector)];
const acts = document.getElementById("acts");
const lines = document.getElementById("lines");
let models = [];

function show(view) {
  state.view = view;
  state.zoom = null;
  models = DATA.views[view].acts.map(act => modelOf(act, DATA.views[view]));
  all(".case").forEach(section => { section.hidden = Number(section.dataset.view) !== view; });
  all("[role=tab]").forEach(tab => tab.setAttribute("aria-selected", String(Number(tab.dataset.view) === view)));
  drawTrace(models, lines);
  draw();
}

function draw() {
  acts.replaceChildren();
  const drawn = models.map(model => {
    if (model.title) acts.append(element("h3", {}, model.title));
    return drawRun(model, state, acts);
  });
  drawn.forEach(look);
  drawLegend(drawn.map(each => each.scale.note).find(Boolean) || "");
  all("[data-axis]").forEach(button => button.setAttribute("aria-pressed", String(button.dataset.axis === state.axis)));
}

function look({ chart, scale, model }) {
  // Begin at what matters, not at step 1.
  const important = model.injected.length ? model.injected[0][1] : model.stop;
  if (important) chart.scrollLeft = scale.x(important) - chart.clientWidth / 3;
}

function drawLegend(note) {
  const kinds = [["dot", "a step"], ["dot cancel", "woken with Cancelled"], ["bar", "waits"], ["cap", "ended"], ["square", "port call"]];
  const items = kinds.map(([kind, text]) => element("span", {}, element("i", { class: kind }), text));
  document.getElementById("legend").replaceChildren(...items, note ? element("b", {}, note) : "");
}

function drawLayers() {
  for (const [layer, text] of Object.entries(LAYERS)) {
    const box = element("input", { type: "checkbox" });
    box.checked = state.layers[layer];
    box.addEventListener("change", () => { state.layers[layer] = box.checked; draw(); });
    document.getElementById("layers").append(element("label", { class: layer }, box, text));
  }
}

// Pointing.

function aboutOf(target) {
  for (let node = target; node && node !== acts; node = node.parentNode) if (node.about) return node.about();
  return null;
}

acts.addEventListener("pointermove", event => {
  const about = aboutOf(event.target);
  if (about) showTip(event, about);
  else hideTip();
  const step = event.target.closest("[data-step]");
  mark(modelAt(event.target), step && Number(step.dataset.step));
});
acts.addEventListener("pointerleave", () => { hideTip(); mark(null); });

acts.addEventListener("click", event => {
  const label = event.target.closest(".label"), step = event.target.closest("[data-step]");
  if (label) only(label);
  if (step) modelAt(step).lines.get(Number(step.dataset.step)).scrollIntoView({ block: "center", behavior: "smooth" });
});

const modelAt = node => (node.closest(".chart") || {}).model;
let marked = [];

function mark(model, number) {
  marked.forEach(node => node.classList.remove("hot"));
  marked = model && number ? [model.lines.get(number), model.dots.get(number)] : [];
  marked.forEach(node => node.classList.add("hot"));
}

function only(label) {
  const chosen = !label.classList.contains("chosen");
  all(".label").forEach(each => each.classList.remove("chosen"));
  if (chosen) label.classList.add("chosen");
  all("#lines [data-task]").forEach(line => { line.hidden = chosen && line.dataset.task !== label.dataset.task; });
  all(".lane, .step").forEach(each => each.classList.toggle("dim", chosen && each.dataset.task !== label.dataset.task));
}

lines.addEventListener("pointerover", event => {
  const line = event.target.closest("[data-step]");
  if (!line) return;
  const { model } = line, number = Number(line.dataset.step);
  mark(model, number);
  const chart = all(".chart").find(each => each.model === model);
  const x = model.dots.get(number).querySelector(".dot").cx.baseVal.value, left = chart.scrollLeft, seen = chart.clientWidth - 190;
  if (x < left || x > left + seen) chart.scrollLeft = x - seen / 2;
});
lines.addEventListener("pointerleave", () => mark(null));

// Buttons.

all("[data-axis]").forEach(button => button.addEventListener("click", () => { state.axis = button.dataset.axis; state.zoom = null; draw(); }));
all("[data-zoom]").forEach(button => button.addEventListener("click", () => {
  const zoomed = { in: (state.zoom || 1) * 1.5, out: (state.zoom || 1) / 1.5, fit: 0 }[button.dataset.zoom];
  state.zoom = zoomed;
  draw();
}));
all("[role=tab]").forEach(tab => tab.addEventListener("click", () => show(Number(tab.dataset.view))));
all("[data-copy]").forEach(button => button.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  } catch {
    // Pages opened from a file may not write to the clipboard.
    getSelection().selectAllChildren(button.parentNode.querySelector(".token"));
    button.textContent = "selected: press copy";
  }
}));
addEventListener("resize", draw);

drawLayers();
document.getElementById("picture").hidden = false;
document.getElementById("trace").hidden = false;
show(0);
