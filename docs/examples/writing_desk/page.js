// Everything that can be chosen on this page comes from /profiles: no profile, tool or skill is named here.

const find = (id) => document.getElementById(id);
const state = { profiles: [], running: false, said: null, tools: new Map() };

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}

// Put your own icon set here: a profile's or a tool's icon is a name.
function icon(name) {
  const made = element("span", "icon", (name ?? "").slice(0, 1));
  made.dataset.icon = name ?? "";
  made.hidden = !name;
  return made;
}

function chosen() {
  return ["domain", "skill"].map((id) => state.profiles.find((each) => each.id === find(id).value)).filter(Boolean);
}

async function discover() {
  state.profiles = await (await fetch("profiles")).json();
  for (const kind of ["domain", "skill"]) {
    const options = state.profiles.filter((each) => each.kind === kind);
    find(kind).replaceChildren(new Option("none", ""), ...options.map((each) => new Option(each.display_name, each.id)));
  }
  show();
}

function show() {
  find("about").replaceChildren(...chosen().flatMap(about));
  const actions = chosen().flatMap((profile) => profile.quick_actions);
  find("actions").replaceChildren(...actions.map((action) => {
    const button = element("button", "", icon(action.icon), action.label);
    button.onclick = () => say(action.prompt);
    return button;
  }));
}

function about(profile) {
  const steps = (profile.mode.steps ?? []).map((step, index) => element("li", "", `${index + 1}. ${step.name}`));
  const tools = profile.tools.map((tool) => {
    const line = element("li", "", icon(tool.icon), tool.label);
    line.dataset.tool = tool.name;
    line.title = tool.description;
    return line;
  });
  return [
    element("h2", "", icon(profile.icon), profile.display_name),
    element("div", "", profile.description),
    element("ul", "", ...steps),
    element("ul", "tools", ...tools),
  ];
}

function line(className, text = "") {
  const made = element("div", className, text);
  find("log").append(made);
  made.scrollIntoView({ block: "end" });
  return made;
}

const label = (name) => state.profiles.flatMap((each) => each.tools).find((tool) => tool.name === name)?.label ?? name;

const tell = {
  TextDelta({ text }) {
    (state.said ??= line("assistant")).append(text);
    state.said.scrollIntoView({ block: "end" });
  },
  ToolCallStart({ call_id, tool_name }) {
    state.said = null;
    state.tools.set(call_id, line("tool", `${label(tool_name)} …`));
  },
  ToolProgress({ call_id, progress }) {
    const shown = state.tools.get(call_id);
    if (shown) shown.dataset.progress = JSON.stringify(progress);
  },
  ToolCallEnd({ call_id, tool_name, output, success }) {
    const shown = state.tools.get(call_id);
    if (!shown) return;
    shown.textContent = `${label(tool_name)} ${success ? "✓" : "✗"}  ${output.content.slice(0, 300)}`;
    shown.classList.toggle("bad", !success);
  },
  StepStart({ step, index }) { state.said = null; line("step", `Step ${index + 1}: ${step}`); },
  StepEnd({ step, success }) { state.said = null; if (!success) line("step bad", `${step} did not finish`); },
  RetryScheduled({ delay_ms }) { line("end", `trying again in ${delay_ms} ms`); },
  ContextCompacted() { line("end", "older parts of the conversation were summarised"); },
  ErrorEvent({ error }) { line("end bad", error.message); },
  TurnComplete({ status, undelivered }) { ended(status, undelivered); },
  TurnCancelled({ undelivered }) { ended("cancelled", undelivered); },
};

function ended(status, undelivered) {
  const shown = line("end", status);
  shown.dataset.status = status;
  find("continue").disabled = status === "completed" || !chosen().some((profile) => profile.mode.steps);
  find("input").value ||= undelivered.flatMap((input) => input.content.map((block) => block.text)).join("\n");
}

const post = (path, body = {}) => fetch(path, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

async function follow(path, body) {
  run(true);
  try {
    const response = await post(path, body);
    if (!response.ok) return line("end bad", (await response.json()).message);
    await read(response.body.pipeThrough(new TextDecoderStream()), ({ payload }) => tell[payload.type]?.(payload));
  } catch (error) {
    line("end bad", `the connection broke: ${error.message}`);
  } finally {
    run(false);
  }
}

async function read(stream, take) {
  const reader = stream.getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (rest + part.value).split("\n\n");
    rest = events.pop();
    for (const event of events) take(JSON.parse(event.slice("data: ".length)));
  }
}

function run(running) {
  Object.assign(state, { running, said: null });
  state.tools.clear();
  find("stop").disabled = !running;
  find("domain").disabled = find("skill").disabled = running;
  find("send").textContent = running ? "Put in" : "Send";
  if (running) find("continue").disabled = true;
}

async function say(message) {
  if (!message.trim()) return;
  if (!state.running) {
    line("user", message);
    await follow("turns", { domain: find("domain").value || null, skill: find("skill").value || null, message });
  } else if ((await (await post("steer", { message })).json()).taken) {
    line("user", message);
  } else {
    find("input").value = message;
  }
}

find("form").onsubmit = (event) => {
  event.preventDefault();
  const message = find("input").value;
  find("input").value = "";
  say(message);
};
find("input").onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  find("form").requestSubmit();
};
find("stop").onclick = () => post("cancel");
find("continue").onclick = () => follow("continue");
find("domain").onchange = find("skill").onchange = () => { find("continue").disabled = true; show(); };
discover().catch((error) => line("end bad", `nothing was discovered: ${error.message}`));
