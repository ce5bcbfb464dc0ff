// The run as lines, one for each step, with everything that happened in between.

function drawTrace(models, container) {
  container.replaceChildren();
  models.forEach(model => {
    if (model.title) container.append(element("h3", {}, model.title));
    if (model.first > 1) container.append(row("aside", "", "", "", `the first ${model.first - 1} steps are left out`));
    const between = eventsOf(model);
    (between.get(0) || []).forEach(made => container.append(made));
    model.steps.forEach(step => {
      container.append(stepRow(model, step));
      (between.get(step.number) || []).forEach(made => container.append(made));
    });
    (between.get(model.last + 1) || []).forEach(made => container.append(made));
  });
}

function row(kind, number, time, task, ...text) {
  return element("div", { class: `line ${kind}` },
    element("span", { class: "number" }, number), element("span", { class: "time" }, time),
    element("span", { class: "task" }, task), element("span", { class: "text" }, ...text));
}

function stepRow(model, step) {
  const text = [ended(step) ? "ended" : where(step.place)];
  if (step.place.source) text.push(element("code", {}, step.place.source));
  if (step.delivered || (step.woken && step.woken.how === "cancel")) text.push(chip("cancel", "Cancelled"));
  if (step.woken && step.woken.how === "error") text.push(chip("error", "exception"));
  step.got.forEach(message => text.push(chip("got", `got ${shortened(message.value)}`)));
  step.sent.forEach(message => text.push(chip("sent", `sent ${shortened(message.value)}`)));
  step.born.forEach(task => text.push(chip("born", `started ${task.label}`)));
  const made = row("at", String(step.number), seconds(step.time), step.task.label, ...text);
  made.dataset.step = step.number;
  made.dataset.task = step.task.index;
  made.model = model;
  model.lines.set(step.number, made);
  if (step.delivered) made.classList.add("delivered");
  if (model.stop !== null && step.number > model.stop) made.classList.add("after");
  return made;
}

const chip = (kind, text) => element("span", { class: `chip ${kind}` }, text);

function eventsOf(model) {
  const between = new Map();
  const put = (step, made) => between.set(step, [...(between.get(step) || []), made]);
  model.injected.forEach(([what, step, time, task, when]) => put(when === "before" ? step - 1 : step, row("injection", "⚡", seconds(time), task, `injected: ${what}`)));
  model.calls.forEach(([name, step]) => put(step, row("port", "", "", "", `port call ${name}`)));
  model.notes.forEach(([step, text]) => put(step, row("memo", "", "", "", text)));
  model.violations.forEach(([kind, message, step]) => put(Math.min(step, model.last + 1), row("violation", "✕", "", kind, message)));
  return between;
}
