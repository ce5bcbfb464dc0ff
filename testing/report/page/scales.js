// Where a step stands on the horizontal axis: one column each, or at its virtual time.

const EDGE = 26;
const WAIT_ROOM = 130;

function stepScale(model, width, zoom) {
  const room = model.waits.length ? WAIT_ROOM : 0;
  const fitting = (width - 2 * EDGE - room) / (model.steps.length + 1.5);
  const comfortable = Math.max(13, Math.min(64, fitting));
  const unit = zoom === null ? comfortable : zoom === 0 ? Math.max(0.5, fitting) : comfortable * zoom;
  const x = number => EDGE + (number - model.first) * unit + (passed(model, number) ? room : 0);
  return { x, after: number => x(number) + unit / 2, before: number => x(number) - unit / 2, unit, note: "",
    right: Math.floor(x(model.last + 1) + EDGE + unit / 2), marks: stepMarks(model, x, unit), room };
}

const passed = (model, number) => model.waits.length > 0 && number > model.stop;

function stepMarks(model, x, unit) {
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find(n => n * unit >= 34) || 2000;
  return model.steps.filter(step => step.number % every === 0 || step.number === model.first)
    .map(step => ({ x: x(step.number), text: String(step.number) }));
}

function instantsOf(model) {
  // Steps that happen at the same virtual time, together.
  const instants = [];
  model.steps.forEach(step => {
    const current = instants[instants.length - 1];
    if (current && current.time === step.time) current.last = step.number;
    else instants.push({ time: step.time, first: step.number, last: step.number });
  });
  const end = instants[instants.length - 1];
  if (!end || model.seconds > end.time) instants.push({ time: model.seconds, first: model.last + 1, last: model.last + 1 });
  else end.last = model.last + 1;
  return instants;
}

function timeScale(model, width, zoom) {
  const room = model.waits.length ? WAIT_ROOM : 0;
  const instants = instantsOf(model);
  const each = Math.max(4, Math.min(24, (width * 0.5) / (model.steps.length + 1)));
  const wide = instants.map(instant => each * (instant.last - instant.first));
  const gaps = instants.slice(1).map((instant, i) => instant.time - instants[i].time);
  const free = Math.max(60 * gaps.length, width - 2 * EDGE - room - sum(wide) - 20);
  const { widths, note } = gapWidths(gaps, free * (zoom || 1));
  const starts = [EDGE];
  gaps.forEach((_, i) => starts.push(starts[i] + wide[i] + widths[i]));
  const number2instant = number => instants.findLastIndex(instant => instant.first <= number);
  const x = number => {
    const i = Math.max(0, number2instant(number));
    const { first, last } = instants[i];
    return starts[i] + (last > first ? wide[i] * Math.min(1, (number - first) / (last - first)) : 0) + (passed(model, number) ? room : 0);
  };
  const marks = instants.map((instant, i) => ({ x: x(instant.first), text: seconds(instant.time) }));
  return { x, after: number => x(number) + each / 2, before: number => x(number) - each / 2, unit: Math.max(each, 8), note, room,
    right: x(model.last + 1) + EDGE + 20, marks: thinned(marks, 52) };
}

function gapWidths(gaps, free) {
  // To scale if every gap is then wide enough to see; otherwise by the logarithm, and the page says so.
  const total = sum(gaps);
  const exact = gaps.map(gap => (gap / total) * free);
  if (gaps.length === 0 || Math.min(...exact) >= 16) return { widths: exact, note: "" };
  const smallest = Math.min(...gaps);
  const weights = gaps.map(gap => 1 + Math.log10(gap / smallest));
  const all = sum(weights);
  return { widths: weights.map(weight => (weight / all) * free), note: "gaps in time are drawn by their logarithm" };
}

const sum = numbers => numbers.reduce((total, number) => total + number, 0);

function thinned(marks, distance) {
  let free = -Infinity;
  return marks.filter(mark => {
    if (mark.x < free) return false;
    free = mark.x + distance;
    return true;
  });
}
