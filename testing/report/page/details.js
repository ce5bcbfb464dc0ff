// What is said about a thing one points at. Text only: nothing a program wrote becomes markup.

const tip = document.getElementById("tip");

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function showTip(event, about) {
  tip.replaceChildren(element("strong", {}, about.head), element("dl", {}, ...about.rows.flatMap(tipRow)));
  tip.hidden = false;
  const { innerWidth, innerHeight } = window;
  const { offsetWidth, offsetHeight } = tip;
  const left = event.clientX + 16 + offsetWidth > innerWidth ? event.clientX - 16 - offsetWidth : event.clientX + 16;
  const top = event.clientY + 16 + offsetHeight > innerHeight ? event.clientY - 12 - offsetHeight : event.clientY + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

const hideTip = () => { tip.hidden = true; };

function tipRow([name, value, code]) {
  const shown = element("dd", {}, value);
  if (code) shown.append(element("code", {}, code));
  return [element("dt", {}, name), shown];
}

const placeRow = (name, place) => [name, where(place), place.source];

function aboutStep(model, step) {
  const earlier = step.task.steps[step.task.steps.indexOf(step) - 1];
  const rows = [];
  if (step.woken) rows.push(["woken", wokenBy(model, step.woken)]);
  if (earlier) rows.push(placeRow("ran from", earlier.place));
  if (step.delivered) rows.push(["hit", "the injection was delivered to this task here"]);
  step.got.forEach(message => rows.push(["got", message.value + (message.sender === null ? "" : `, from ${model.tasks[message.sender].label}`)]));
  step.calls.forEach(call => rows.push(["called", call]));
  step.sent.forEach(message => rows.push(["sent", message.value + (message.receiver === null ? ", never received" : `, to ${model.tasks[message.receiver].label}`)]));
  step.born.forEach(task => rows.push(["started", task.label]));
  step.notes.forEach(text => rows.push(["note", text]));
  rows.push(ended(step) ? ["then", "ended"] : placeRow("then waits at", step.place));
  return { head: `step ${step.number} · ${step.task.label} · ${seconds(step.time)}`, rows };
}

function wokenBy(model, wake) {
  const how = { value: "", deadline: "", cancel: ", with Cancelled", error: ", with an exception" }[wake.how];
  const nobody = { deadline: "by the clock", cancel: "from outside", error: "from outside", value: "from outside" }[wake.how];
  return (wake.by === null ? nobody : `by ${model.tasks[wake.by].label}`) + how;
}

function aboutWait(model, step, next) {
  const rows = [placeRow("at", step.place), ["since", `step ${step.number}, ${seconds(step.time)}`]];
  if (next) rows.push(["until", `step ${next.number}, ${seconds(next.time)} (${seconds(next.time - step.time)} later)`]);
  else rows.push(["until", "the run was over"]);
  if (next && next.woken) rows.push(["woken", wokenBy(model, next.woken)]);
  const wait = step.task.wait;
  const stuck = wait && (!next || next.number > model.stop);
  if (stuck) rows.push(["in", wait.call + (wait.detail ? ` (${wait.detail})` : "")]);
  if (stuck && wait.for.length) rows.push(["waits for", wait.for.join(" and ")]);
  return { head: `${step.task.label} waits`, rows };
}

function aboutMessage(model, message) {
  const name = index => (index === null ? "nobody" : model.tasks[index].label);
  const rows = [["value", "", message.value], ["sent by", `${name(message.sender)}, step ${message.sent_step}, ${seconds(message.sent_time)}`]];
  if (message.receiver === null) rows.push(["received", "never"]);
  else {
    rows.push(["received by", `${name(message.receiver)}, step ${message.received_step}, ${seconds(message.received_time)}`]);
    if (message.received_time > message.sent_time) rows.push(["waited", seconds(message.received_time - message.sent_time)]);
  }
  return { head: `message on channel ${message.channel}`, rows };
}

function aboutWake(model, wake) {
  const rows = [["woke", `${model.tasks[wake.task].label}, in step ${wake.step}`], ["by", `${model.tasks[wake.by].label}, in step ${wake.waker.number}`]];
  if (wake.how !== "value") rows.push(["with", wake.how === "cancel" ? "Cancelled" : "an exception"]);
  return { head: "wake-up", rows };
}

const aboutBirth = (model, task) => ({
  head: `${task.label} is born`,
  rows: [["in the nursery of", model.tasks[task.parent].label], ["in", `step ${task.born}, ${seconds(model.timeAt(task.born))}`]],
});

const aboutInjection = ([what, step, time, task]) => ({
  head: `injected: ${what}`, rows: [["in", `step ${step}, ${seconds(time)}`], ["current task", task]],
});

const aboutViolation = ([kind, message, step]) => ({ head: kind, rows: [["after", `step ${step}`], ["", message]] });
