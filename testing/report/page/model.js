// What a drawing needs to know about one run, worked out from the raw data. Draws nothing.

const DATA = JSON.parse(document.getElementById("data").textContent);

function modelOf(act, view) {
  const tasks = act.tasks.map(([label, parent, born], index) => ({
    index, label, parent, born, steps: [], children: [], depth: 0, row: 0, wait: null,
  }));
  const steps = act.steps.map(([task, place, time], i) => ({
    number: act.first + i, task: tasks[task], place: DATA.places[place], time,
    woken: null, sent: [], got: [], born: [], calls: [], notes: [], delivered: false,
  }));
  const model = {
    ...act, tasks, steps, dots: new Map(), lines: new Map(), last: act.first + steps.length - 1, kind: view.kind,
    step: number => steps[number - act.first],
    timeAt: number => (number > act.first + steps.length - 1 ? act.seconds : (steps[number - act.first] || steps[0] || { time: 0 }).time),
  };
  steps.forEach(step => step.task.steps.push(step));
  arrange(tasks);
  connect(model);
  return model;
}

function arrange(tasks) {
  // Parents above their children, both in the order of birth.
  tasks.forEach(task => task.parent !== null && tasks[task.parent].children.push(task));
  let row = 0;
  const place = (task, depth) => {
    task.depth = depth;
    task.row = row++;
    task.children.forEach(child => place(child, depth + 1));
  };
  tasks.filter(task => task.parent === null).forEach(task => place(task, 0));
}

function connect(model) {
  const { tasks, step } = model;
  tasks.forEach(task => step(task.born) && task.parent !== null && step(task.born).born.push(task));
  model.calls.forEach(([name, number]) => step(number) && step(number).calls.push(name));
  model.notes.forEach(([number, text]) => step(number) && step(number).notes.push(text));
  model.wakes = model.wakes.filter(wake => step(wake.step)).map(wake => ({ ...wake, waker: waker(model, wake) }));
  model.wakes.forEach(wake => { step(wake.step).woken = wake; });
  model.messages = model.messages.filter(message => message.sent_step >= model.first);
  model.messages.forEach(message => {
    if (step(message.sent_step)) step(message.sent_step).sent.push(message);
    if (message.received_step && step(message.received_step)) step(message.received_step).got.push(message);
  });
  model.delivered = model.delivered
    .map(([number, label, place]) => ({ number, label, place: DATA.places[place] }))
    .filter(delivery => step(delivery.number));
  model.delivered.forEach(delivery => { step(delivery.number).delivered = true; });
  model.waits.forEach(wait => {
    const task = tasks.find(each => each.label === wait.task);
    if (task) task.wait = { ...wait, place: DATA.places[wait.place] };
  });
}

function waker(model, wake) {
  // The step in which somebody made the task runnable: the latest one of that task.
  if (wake.by === null) return null;
  return model.tasks[wake.by].steps.findLast(step => step.number < wake.step) || null;
}

const ended = step => step.place.file === "";
const where = place => (place.file ? `${place.file}:${place.line} in ${place.in}` : "its end");

function seconds(time) {
  if (!isFinite(time)) return "∞";
  if (time !== 0 && Math.abs(time) < 0.001) return `${time.toExponential(1)} s`;
  return `${+time.toFixed(time < 1000 ? 3 : 0)} s`;
}
