// One run as a picture: a lane for each task, time from left to right, arrows for what goes from one to another.

const LANE = 38;
const FLAGS = 44;
const AXIS = 24;

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawRun(model, options, container) {
  const chart = element("div", { class: "chart", tabindex: "0" });
  chart.model = model;
  container.append(chart);
  const labels = drawLabels(model);
  const width = chart.clientWidth - 190;
  const scale = (options.axis === "time" ? timeScale : stepScale)(model, width, options.zoom);
  const right = Math.max(scale.right, width);
  const height = model.tasks.length * LANE + 8;
  const head = svg("svg", { class: "head", width: right, height: FLAGS + AXIS });
  const body = svg("svg", { class: "body", width: right, height, role: "img", "aria-label": `${model.tasks.length} task lanes` });
  const corner = element("div", { class: "corner" }, element("span", {}, options.axis === "time" ? "virtual time" : "step"));
  chart.append(corner, head, labels, body);
  const drawing = { model, scale, head, body, right, height, options, y: task => task.row * LANE + LANE / 2 + 2 };
  defineArrows(body);
  drawRuler(drawing);
  drawAftermath(drawing);
  drawLives(drawing);
  if (options.layers.births) drawBirths(drawing);
  if (options.layers.wakes) drawWakes(drawing);
  drawFlags(drawing);
  if (options.layers.messages) drawMessages(drawing);
  drawSteps(drawing);
  drawStuck(drawing);
  return { chart, scale, model };
}

function drawLabels(model) {
  const labels = element("div", { class: "labels" });
  [...model.tasks].sort((a, b) => a.row - b.row).forEach(task => {
    const hit = model.delivered.some(delivery => delivery.label === task.label);
    const label = element("button", { class: "label", "data-task": task.index, title: task.label },
      element("span", { style: `padding-left:${Math.min(task.depth, 6) * 13}px` }, `${task.depth ? "└ " : ""}${task.label}`));
    if (hit) label.append(element("em", { class: "hit" }, "cancelled here"));
    if (task.wait) label.append(element("em", { class: "stuck" }, task.wait.call));
    labels.append(label);
  });
  return labels;
}

function defineArrows(body) {
  const defs = svg("defs");
  for (const kind of ["message", "wake", "birth", "stuck"]) {
    defs.append(svg("marker", { id: `arrow-${kind}`, class: `arrow ${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" },
      svg("path", { d: "M0 0.8 L8 4 L0 7.2 Z" })));
  }
  body.append(defs);
}

function pointed(shape, about) {
  shape.about = about;
  return shape;
}

// Behind everything.

function drawRuler({ model, scale, head, body, height, options }) {
  scale.marks.forEach(mark => {
    head.append(svg("text", { class: "mark", x: mark.x, y: FLAGS + 15 }, mark.text));
    body.append(svg("line", { class: "grid", x1: mark.x, x2: mark.x, y1: 0, y2: height }));
  });
  if (options.axis !== "steps") return;
  // Bands of steps that happen at the same virtual time.
  let free = -Infinity;
  instantsOf(model).forEach((instant, i) => {
    const from = Math.max(1, scale.before(instant.first)), to = scale.after(instant.last);
    if (i % 2) body.prepend(svg("rect", { class: "band", x: from, y: 0, width: Math.max(0, to - from), height }));
    if (from < free) return;
    const text = seconds(instant.time);
    head.append(svg("line", { class: "instant", x1: from, x2: from, y1: FLAGS - 8, y2: FLAGS + AXIS }));
    head.append(svg("text", { class: "clock", x: from + 3, y: FLAGS - 1 }, text));
    free = from + 7 * text.length + 8;
  });
}

function drawAftermath({ model, scale, head, body, right, height }) {
  if (model.stop === null || model.stop >= model.last) return;
  const from = scale.before(model.stop + 1);
  body.append(svg("rect", { class: "aftermath", x: from, y: 0, width: Math.max(0, right - from), height }));
  head.append(svg("text", { class: "aside", x: from + 4, y: 12 }, "the engine ends the run"));
}

// Lanes.

function drawLives(drawing) {
  const { model, scale, body, y } = drawing;
  model.tasks.forEach(task => {
    const { steps } = task;
    if (!steps.length) return;
    const lane = svg("g", { class: "lane", "data-task": task.index });
    const end = steps[steps.length - 1];
    const start = task.parent === null ? steps[0].number : Math.max(task.born, model.first);
    const stop = ended(end) ? end.number : model.last + 1;
    lane.append(svg("line", { class: "life", x1: scale.x(start), x2: scale.x(stop), y1: y(task), y2: y(task) }));
    steps.forEach((step, i) => {
      if (!ended(step)) lane.append(waitBar(drawing, step, steps[i + 1]));
    });
    body.append(lane);
  });
}

function waitBar({ model, scale, y }, step, next) {
  const stuck = step.task.wait && (!next || next.number > model.stop);
  const from = scale.x(step.number), to = scale.x(next ? next.number : model.last + 1);
  const bar = svg("rect", { class: `wait${stuck ? " stuck" : ""}`, x: from, y: y(step.task) - 5, width: Math.max(0, to - from), height: 10, rx: 4 });
  return pointed(bar, () => aboutWait(model, step, next));
}

function drawSteps({ model, scale, body, y }) {
  model.steps.forEach(step => {
    const x = scale.x(step.number), at = y(step.task);
    const how = step.delivered ? "cancel" : step.woken ? step.woken.how : "value";
    const dot = svg("g", { class: `step ${how}${ended(step) ? " ended" : ""}`, "data-step": step.number, "data-task": step.task.index });
    if (step.delivered) dot.append(svg("circle", { class: "halo", cx: x, cy: at, r: 9 }));
    if (ended(step)) dot.append(svg("line", { class: "cap", x1: x, x2: x, y1: at - 8, y2: at + 8 }));
    dot.append(svg("circle", { class: "dot", cx: x, cy: at, r: Math.min(4, Math.max(1.6, scale.unit / 2.6)) }));
    if (step.calls.length) dot.append(svg("rect", { class: "call", x: x - 2.5, y: at - 14, width: 5, height: 5 }));
    if (step.notes.length) dot.append(svg("path", { class: "memo", d: `M${x - 3} ${at - 9} h6 l-3 4 z` }));
    model.dots.set(step.number, dot);
    body.append(pointed(dot, () => aboutStep(model, step)));
  });
}

// From lane to lane.

function curve(x1, y1, x2, y2) {
  const bend = y1 === y2 ? 0 : Math.max(4, Math.min(30, Math.abs(x2 - x1) / 2));
  return y1 === y2 ? `M${x1} ${y1} C${x1 + 6} ${y1 - 22} ${x2 - 6} ${y1 - 22} ${x2} ${y2}` : `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function hoverable(body, kind, d, about) {
  // A wide invisible line under the thin one, to be pointed at.
  const group = pointed(svg("g", { class: `link ${kind}` }), about);
  group.append(svg("path", { class: "reach", d }), svg("path", { class: "line", d, "marker-end": `url(#arrow-${kind})` }));
  body.append(group);
  return group;
}

function drawMessages({ model, scale, body, y, right }) {
  const written = [];
  model.messages.forEach(message => {
    if (message.sender === null) return;
    const x1 = scale.x(message.sent_step), y1 = y(model.tasks[message.sender]);
    const about = () => aboutMessage(model, message);
    if (message.receiver === null) {
      const group = hoverable(body, "message", `M${x1} ${y1} l9 13`, about);
      group.classList.add("lost");
      group.append(svg("path", { class: "cross", d: `M${x1 + 5} ${y1 + 9} l8 8 m0 -8 l-8 8` }));
      return;
    }
    const x2 = scale.x(message.received_step), y2 = y(model.tasks[message.receiver]);
    const side = Math.sign(y2 - y1);
    const group = hoverable(body, "message", curve(x1, y1 + side * 4, x2, y2 - side * 5), about);
    const text = shortened(message.value);
    // Between two lanes, beside the arrow, where nothing is written yet.
    const width = text.length * 6.8, middle = (x1 + x2) / 2;
    const place = { x: middle + 6 + width > right ? middle - 8 - width : middle + 6, y: Math.round((y1 + y2) / 2 / LANE) * LANE + 6, width };
    if (side === 0 || written.some(other => other.y === place.y && place.x < other.x + other.width && other.x < place.x + place.width)) return;
    written.push(place);
    group.append(svg("text", { class: "value", x: place.x, y: place.y }, text));
  });
}

const shortened = text => (text.length > 18 ? `${text.slice(0, 17)}…` : text);

function drawBirths({ model, scale, body, y }) {
  model.tasks.forEach(task => {
    if (task.parent === null || !task.steps.length || task.born < model.first) return;
    const x = scale.x(task.born), y1 = y(model.tasks[task.parent]), y2 = y(task);
    hoverable(body, "birth", `M${x} ${y1 + 4} V${y2 - 3}`, () => aboutBirth(model, task));
  });
}

function drawWakes({ model, scale, body, y }) {
  const carried = new Set(model.messages.map(message => `${message.receiver} ${message.received_step} ${message.sender}`));
  model.wakes.forEach(wake => {
    if (!wake.waker || carried.has(`${wake.task} ${wake.step} ${wake.by}`)) return;
    const newborn = model.tasks[wake.task].steps[0] === model.step(wake.step);
    if (newborn) return;
    const y1 = y(model.tasks[wake.by]), y2 = y(model.tasks[wake.task]), side = Math.sign(y2 - y1);
    const group = hoverable(body, "wake", curve(scale.x(wake.waker.number), y1 + side * 4, scale.x(wake.step), y2 - side * 5), () => aboutWake(model, wake));
    group.classList.add(wake.how);
  });
}

// What was done to the run, and what went wrong.

function drawFlags(drawing) {
  const { model, scale } = drawing;
  model.injected.forEach(injection => {
    const [what, step, , , when] = injection;
    const x = what.includes(" at port call ") ? scale.x(step) : when === "before" ? scale.before(step) : scale.after(step);
    if (step >= model.first) flag(drawing, "injection", x, 12, `⚡ ${what}`, () => aboutInjection(injection));
  });
  model.violations.forEach((violation, i) => {
    const [kind, message, step] = violation;
    const x = model.stop === null ? scale.x(model.last + 1) : scale.after(step);
    if (i === 0) flag(drawing, "violation", x, 28, `✕ ${kind}`, () => aboutViolation(violation), message);
  });
}

function flag({ head, body, right, height, scale }, kind, x, level, text, about) {
  const group = pointed(svg("g", { class: `flag ${kind}` }), about);
  group.append(svg("line", { x1: x, x2: x, y1: level - 9, y2: FLAGS + AXIS }));
  const flip = x + 7 * text.length > right;
  group.append(svg("text", { x: flip ? x - 4 : x + 4, y: level, "text-anchor": flip ? "end" : "start" }, text));
  head.append(group);
  const line = pointed(svg("g", { class: `flag ${kind}` }), about);
  line.append(svg("line", { class: "reach", x1: x, x2: x, y1: 0, y2: height }), svg("line", { x1: x, x2: x, y1: 0, y2: height }));
  body.append(line);
}

function drawStuck({ model, scale, body, y }) {
  // Who waits for whom: from the one that waits to the one that must act.
  const x = scale.after(model.stop) + 10;
  let depth = 0;
  model.tasks.filter(task => task.wait).forEach(task => {
    const held = task.wait.for.map(label => model.tasks.find(each => each.label === label)).filter(Boolean);
    held.forEach(other => {
      // That a parent waits for its children is no news: a thin arrow, close to the line.
      const parent = other.parent === task.index;
      const bulge = parent ? 24 : 60 + 26 * (depth++ % 3), y1 = y(task), y2 = y(other), side = Math.sign(y2 - y1);
      const group = hoverable(body, "stuck", `M${x} ${y1 + side * 3} C${x + bulge} ${y1 + side * 5} ${x + bulge} ${y2 - side * 6} ${x} ${y2 - side * 6}`,
        () => ({ head: `${task.label} waits for ${other.label}`, rows: [["in", task.wait.call], placeRow("at", task.wait.place)] }));
      if (parent) group.classList.add("parent");
    });
  });
}
