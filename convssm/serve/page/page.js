// What is seen and what can be done. The page asks for every frame, so pausing is not asking.
import {Connection} from './connection.js';

const $ = id => document.getElementById(id);
const keys = {ArrowUp: 'up', ArrowLeft: 'left', ArrowRight: 'right'};

let about = null;      // the model, from the server
let view = null;       // what is shown
let playing = false;   // time runs by itself
let stepping = false;  // a loop of steps is under way
const held = new Set();    // arrows, or numbers of actions, in the order of pressing
const tapped = new Set();  // those that were pressed since the last step, held or not
const tripTimes = [], modelTimes = [], frameTimes = [];

const connection = new Connection({
  joined(words) {
    about = words;
    setUp();
    ask({do: 'look'});
    if (!takesActions()) setPlaying(true);
  },
  lost(why) {
    setPlaying(false);
    say(why, true);
  },
});

function say(text, bad = false) {
  $('status').textContent = text;
  $('status').classList.toggle('error', bad);
}

// Asks and shows the answer; null if it was refused.
async function ask(request, done = '') {
  try {
    const answer = await connection.ask(request);
    show(answer);
    if (done) say(done);
    return answer;
  } catch (error) {
    setPlaying(false);
    letGo();
    if (error.kind !== 'unknown visitor') say(error.message, true);
    else if (await connection.join()) say('The walk was silent for too long and is over. Here is a new one.', true);
    return null;
  }
}

// --- actions

const takesActions = () => about.actions > 0 || about.action_values > 0;
const stepsByAction = () => about.actions > 0;  // by a key or button each

// The action of the keys that are held or were tapped. Of two arrows that no action does together the last one counts.
function takeAction() {
  const pressed = [...new Set([...held, ...tapped])], last = pressed.at(-1);
  tapped.clear();
  if (about.action_values > 0) return [...document.querySelectorAll('#moves input')].map(input => Number(input.value));
  if (about.actions === 0) return undefined;
  if (!about.action_names.length) return last ?? (about.masked ? undefined : 0);
  return arrowAction(pressed) ?? arrowAction([last]) ?? 0;
}

function arrowAction(arrows) {
  const fits = name => name.includes('forward') === arrows.includes('up') &&
    name.includes('left') === arrows.includes('left') && name.includes('right') === arrows.includes('right');
  const found = about.action_names.findIndex(fits);
  return found < 0 ? null : found;
}

async function step() {
  const action = takeAction();
  const request = {do: 'step', all: $('all').checked};
  if (action !== undefined) request.action = action;
  const answer = await ask(request);
  if (!answer) return;
  remember(tripTimes, answer.roundTrip);
  remember(modelTimes, answer.milliseconds);
  remember(frameTimes, performance.now());
  showNumbers();
}

// Steps as long as time runs or something is held, at the chosen speed. One press is at least one step.
async function run() {
  if (stepping || !about) return;
  stepping = true;
  let due = performance.now();
  do {
    await step();
    due = Math.max(due + 1000 / Number($('speed').value), performance.now());
    await new Promise(resolve => setTimeout(resolve, due - performance.now()));
  } while (playing || held.size || tapped.size);
  stepping = false;
}

function press(what) {
  held.add(what);
  tapped.add(what);
  markHeld();
  run();
}

function release(what) {
  held.delete(what);
  markHeld();
}

function markHeld() {
  for (const button of document.querySelectorAll('#moves button')) {
    button.classList.toggle('held', held.has(button.dataset.what) || held.has(Number(button.dataset.what)));
  }
}

function letGo() {
  held.clear();
  tapped.clear();
  markHeld();
}

// One step with this action, without holding it.
function tap(what) {
  tapped.add(what);
  run();
}

// --- what is seen

function show(answer) {
  if (view?.branches.length !== answer.branches.length || view.truth !== answer.truth) layOut(answer);
  view = answer;
  const cards = $('views').children;
  answer.branches.forEach((branch, i) => {
    const [seen, truth] = cards[i].querySelectorAll('canvas');
    draw(seen, branch.seen);
    if (truth) draw(truth, branch.trueImage);
    cards[i].dataset.frame = branch.frame;
    cards[i].setAttribute('aria-pressed', i === answer.chosen);
    cards[i].querySelector('.number').textContent = `frame ${branch.frame}, ${branch.kept} kept`;
  });
  const several = answer.branches.length > 1;
  $('views').classList.toggle('several', several);
  $('next').disabled = $('keep').disabled = !several;
  $('back').disabled = $('back-far').disabled = answer.branches[answer.chosen].kept === 0;
  if (about.has_temperature && document.activeElement !== $('temperature')) $('temperature').value = answer.temperature;
  if (document.activeElement?.form !== $('start')) {
    $('world').value = answer.world;
    $('seed').value = answer.seed;
  }
  showRecording(answer.recording);
}

function draw(canvas, image) {
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext('2d').putImageData(image, 0, 0);
}

// A card for each branch, a button of its own.
function layOut(answer) {
  const picture = label => {
    const box = document.createElement('span'), canvas = document.createElement('canvas'), text = document.createElement('span');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', label);
    text.className = 'caption';
    text.textContent = label;
    box.append(canvas, text);
    return box;
  };
  $('views').replaceChildren(...answer.branches.map((_, i) => {
    const card = document.createElement('button'), pair = document.createElement('span'), number = document.createElement('span');
    const name = answer.branches.length > 1 ? `branch ${i + 1}` : 'model';
    card.type = 'button';
    card.className = answer.branches.length > 1 ? 'branch' : 'branch alone';
    pair.className = 'pair';
    number.className = 'caption number';
    pair.append(picture(name), ...(answer.truth ? [picture('true world')] : []));
    card.append(pair, number);
    card.onclick = () => ask({do: 'choose', branch: i});
    return card;
  }));
}

function remember(list, value) {
  list.push(value);
  if (list.length > 120) list.shift();
}

function quantile(list, q) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

function showNumbers() {
  const recent = frameTimes.filter(time => time > performance.now() - 2000);
  const rate = recent.length > 1 ? 1000 * (recent.length - 1) / (recent.at(-1) - recent[0]) : 0;
  const text = list => `${quantile(list, 0.5).toFixed(1)} / ${quantile(list, 0.95).toFixed(1)} ms`;
  $('numbers').textContent =
    `${rate.toFixed(1)} frames/s. p50 / p95: model ${text(modelTimes)}, there and back ${text(tripTimes)}`;
}

function showRecording(recording) {
  const open = Boolean(recording?.open);
  $('record').setAttribute('aria-pressed', open);
  $('record').firstChild.textContent = open ? `Stop (${recording.frames} of ${about.most_recorded}) ` : 'Record ';
  $('gif').hidden = !recording || open || recording.frames === 0;
  if (!$('gif').hidden) $('gif').href = `recording/${about.visitor}.gif`;
}

// --- controls

function setPlaying(on) {
  playing = on;
  $('play').setAttribute('aria-pressed', on);
  $('play').firstChild.textContent = on ? 'Pause ' : 'Play ';
  if (on) run();
}

const commands = {
  play() {
    setPlaying(!playing);
    say(playing ? 'Time runs.' : 'Paused.');
  },
  'one-step': () => tap('none'),
  back: () => ask({do: 'rewind', frames: 1, all: $('all').checked}),
  'back-far': () => ask({do: 'rewind', frames: 20, all: $('all').checked}),
  branch() {
    const count = Number($('count').value);
    ask({do: 'branch', count}, `${count} branches; the framed one is chosen.`);
  },
  next: () => ask({do: 'choose', branch: (view.chosen + 1) % view.branches.length}),
  keep: () => ask({do: 'keep'}, 'One branch.'),
  record() {
    if (view.recording?.open) ask({do: 'stop'}, 'The recording is complete.');
    else ask({do: 'record', fps: Number($('speed').value)}, 'Recording.');
  },
};
const shortcuts = {' ': 'play', s: 'one-step', Backspace: 'back', b: 'branch', n: 'next', k: 'keep', r: 'record'};

// What only depends on the model.
function setUp() {
  document.title = about.world ? `convssm: ${about.world}` : 'convssm';
  $('title').textContent = about.world ? `A walk through the ${about.world} that was learned` : 'A learned scene';
  $('model').textContent = about.model;
  $('world-name').textContent = about.world ? 'World' : 'Clip';
  $('world').max = about.worlds - 1;
  $('seed-label').hidden = !about.draws;
  $('temperature-label').hidden = !about.has_temperature;
  $('all').checked = about.draws;
  $('moves').replaceChildren(...moveControls());
  $('moves').classList.toggle('arrows', about.action_names.length > 0);
  $('one-step').hidden = $('one-step').disabled = stepsByAction();
  say(!takesActions() ? 'Time runs.' : `Paused: a frame comes with each ${stepsByAction() ? 'action' : 'step'}.`);
}

function moveControls() {
  if (about.action_values > 0) {
    return Array.from({length: about.action_values}, (_, i) => {
      const label = document.createElement('label'), input = document.createElement('input');
      Object.assign(input, {type: 'number', step: 'any', value: 0});
      input.onkeydown = event => { if (event.key === 'Enter') tap('none'); };
      label.append(`${i} `, input);
      return label;
    });
  }
  if (about.action_names.length) {
    return [['up', '↑', 'forward'], ['left', '←', 'left'], ['none', '·', 'wait'], ['right', '→', 'right']].map(
      ([what, sign, name]) => moveButton(what, sign, name));
  }
  return Array.from({length: about.actions}, (_, i) => moveButton(i, String(i), `action ${i}`));
}

function moveButton(what, sign, name) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = String(what);
  button.dataset.what = what;
  button.textContent = sign;
  button.setAttribute('aria-label', name);
  button.onpointerdown = event => {
    button.setPointerCapture(event.pointerId);
    press(what);
  };
  button.onpointerup = button.onpointercancel = () => release(what);
  button.onclick = event => { if (event.detail === 0) tap(what); };  // by the keyboard
  return button;
}

// Whether the key is the control's own.
function isTyping({target, key}) {
  if (target.matches('input[type=range]')) return key.startsWith('Arrow');
  if (target.matches('select')) return key.startsWith('Arrow') || key === ' ' || /^\d$/.test(key);
  return target.matches('input:not([type=checkbox])');
}

function onKeyDown(event) {
  if (!about || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  const onButton = event.target.matches('button, a, summary, input');
  if (onButton && (event.key === ' ' || event.key === 'Enter')) return;  // presses what has the focus
  if (event.key in keys && about.action_names.length) {
    event.preventDefault();
    if (!event.repeat) press(keys[event.key]);
  } else if (/^\d$/.test(event.key) && !about.action_names.length && Number(event.key) < about.actions) {
    if (!event.repeat) press(Number(event.key));
  } else if (event.key === 'a') {
    $('all').checked = !$('all').checked;
  } else if (event.key in shortcuts && (!event.repeat || event.key === 'Backspace')) {
    event.preventDefault();
    const name = event.key === 'Backspace' && event.shiftKey ? 'back-far' : shortcuts[event.key];
    if (!$(name).disabled) commands[name]();
  }
}

function onKeyUp(event) {
  if (event.key in keys) release(keys[event.key]);
  else if (/^\d$/.test(event.key)) release(Number(event.key));
}

for (const [name, command] of Object.entries(commands)) $(name).onclick = command;
document.addEventListener('keydown', onKeyDown);
document.addEventListener('keyup', onKeyUp);
window.addEventListener('blur', letGo);
let playsWhenSeen = false;
document.addEventListener('visibilitychange', () => {
  if (!about) return;
  if (document.hidden) playsWhenSeen = playing && !takesActions();
  setPlaying(!document.hidden && (playing || playsWhenSeen));
});
// After a choice by mouse or finger the arrows walk again; by the keyboard they go on choosing.
let byPointer = false;
document.addEventListener('pointerdown', () => { byPointer = true; }, true);
document.addEventListener('keydown', () => { byPointer = false; }, true);
for (const id of ['speed', 'count']) $(id).onchange = () => { if (byPointer) $(id).blur(); };
$('speed').oninput = () => { $('speed-text').textContent = $('speed').value; };
$('temperature').onchange = () => ask({do: 'temperature', value: Number($('temperature').value)}, 'Temperature set.');
$('start').onsubmit = event => {
  event.preventDefault();
  document.activeElement.blur();
  ask({do: 'start', world: Number($('world').value), seed: Number($('seed').value)}, 'A new walk.');
};
