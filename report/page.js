// Shows the page's data. Numbers are taken from the data as they are, and shown with the digits that the tools print. An
// element that shows a number also holds it in full, as `value` or `data-value`.
(function () {
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const plan = data.plan;

// ---------------------------------------------------------------- elements

/** Sets attributes and appends children; text becomes text, never markup. */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== null && value !== false && value !== undefined) element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}
function html(tag, attributes, ...children) { return fill(document.createElement(tag), attributes, children); }
function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}
function section(id) { return document.getElementById(id); }

// ---------------------------------------------------------------- numbers in words

const DIGITS = 4;

/** Prints a number as the tools do, in the largest unit in which it is at least 1. 0 has no such unit and is printed as `zero`. */
function inUnits(number, units, zero) {
  if (number === 0) return zero;
  const unit = units.find(([, size]) => Math.abs(number) >= size) || units[units.length - 1];
  return String(Number((number / unit[1]).toPrecision(DIGITS))) + ' ' + unit[0];
}
const DURATIONS = [['s', 1], ['ms', 1e-3], ['us', 1e-6], ['ns', 1e-9]];
const SIZES = [['TB', 1e12], ['GB', 1e9], ['MB', 1e6], ['kB', 1e3], ['B', 1]];
function duration(seconds) {
  return seconds === null || seconds === undefined ? 'not known' : inUnits(seconds, DURATIONS, '0 s');
}
function size(bytes) { return inUnits(bytes, SIZES, '0 B'); }
function percent(share) { return (100 * share).toFixed(1) + ' %'; }
function whole(number) { return String(number).replace(/\B(?=(\d{3})+$)/g, '\u202f'); }
function plural(count, one, many) { return whole(count) + ' ' + (count === 1 ? one : many || one + 's'); }

/** A number of the data, shown as text. */
function shown(number, text) {
  return number === null || number === undefined ? html('span', null, 'not known') :
      html('data', {value: number, title: String(number)}, text(number));
}
/** Time with its interval: "155.8 ms (146.6 ms to 165.7 ms)". */
function interval(middle, low, high) {
  const made = html('span', null, shown(middle, duration));
  if (low !== null && low !== undefined) made.append(' (', shown(low, duration), ' to ', shown(high, duration), ')');
  return made;
}

/** About `count` round numbers between `from` and `to`, for the ticks of an axis. */
function ticks(from, to, count) {
  const rough = (to - from) / Math.max(1, count);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map(times => times * power).find(candidate => candidate >= rough);
  const found = [];
  for (let at = Math.ceil(from / step); at * step <= to; ++at) found.push(at * step);
  return found;
}

/** A table. Cells are texts, elements, or {text, sort} objects. Columns whose head is {words} are aligned left. */
function table(caption, heads, rows) {
  const cell = (tag, content, column, extra) => html(tag, Object.assign({class: heads[column].words ? 'words' : null}, extra), content);
  return html('div', {class: 'scroll'}, html('table', null, html('caption', null, caption),
      html('thead', null, html('tr', null, ...heads.map((head, column) => cell('th', head.words || head, column, {scope: 'col'})))),
      html('tbody', null, ...rows.map(row => html('tr', null, ...row.map((content, column) =>
          column === 0 ? cell('th', content, column, {scope: 'row', style: 'font-weight:400'}) : cell('td', content, column)))))));
}
function legend(kinds) {
  return html('ul', {class: 'legend'}, ...kinds.map(kind =>
      html('li', {style: `--colour: var(--${kind})`}, KIND_WORDS[kind] || kind)));
}
const KIND_WORDS = {Forward: 'forward', Backward: 'backward', Steps: 'steps', Encode: 'encode', Decode: 'decode', Merge: 'merge',
                    Send: 'send', AllReduce: 'all-reduce', LocalReduce: 'reduce between GPUs', LocalBroadcast: 'gather between GPUs',
                    wire: 'latency of the wire', AllGather: 'all-gather', ReduceScatter: 'reduce-scatter', AllToAll: 'all-to-all'};

/** Drawings to repeat when the page's width changes. */
const drawings = [];
/** Appends a figure. `draw(width)` makes its SVG, which is as wide as `place`. */
function figure(place, draw) {
  const holder = html('figure');
  place.append(holder);
  let width = 0;
  const redraw = () => {
    const now = Math.max(280, Math.floor(holder.clientWidth || 0));
    if (now === width) return;
    width = now;
    holder.replaceChildren(draw(width));
  };
  drawings.push(redraw);
  redraw();
}
window.addEventListener('resize', () => requestAnimationFrame(() => drawings.forEach(redraw => redraw())));

// ---------------------------------------------------------------- gradients

const gradients = (function () {
  const g = data.gradients;
  const names = [];
  let before = '';
  for (let i = 0; i < g.names.rest.length; ++i) names.push(before = before.slice(0, g.names.shared[i]) + g.names.rest[i]);
  const bytesOf = {float32: 4, float16: 2, bfloat16: 2};
  const rows = names.map((name, i) => ({
    name, index: g.index ? g.index[i] : i, elements: g.elements[i], bytes: g.elements[i] * bytesOf[g.dtypes[g.dtype[i]]],
    algorithm: g.algorithms[g.algorithm[i]], K: g.K[i], unit: g.unit[i], ready: g.ready_ns[i] * 1e-9,
    done: g.done_ns ? g.done_ns[i] * 1e-9 : null, why: g.why ? g.whys[g.why[i]] : ''}));
  const byIndex = new Map(rows.map(row => [row.index, row]));
  const groupOf = unit => (unit >= g.all ? `bulk${unit - g.all}` : null);
  for (const row of rows) row.group = groupOf(row.unit) || '';
  return {
    rows, all: g.all,
    unitName: unit => unit < 0 ? '' : groupOf(unit) || (byIndex.has(unit) ? byIndex.get(unit).name : 'gradient ' + unit),
    membersOf: unit => rows.filter(row => row.unit === unit)};
})();

// ---------------------------------------------------------------- this plan beside others

const BASELINES = {ddp: 'PyTorch DDP', ddp_fp16: 'DDP with its fp16 hook', ddp_powersgd: 'DDP with its PowerSGD hook'};

/** Names of the frameworks' baselines to draw. For sharded jobs, they are the fastest three. */
function barred() {
  const known = key => plan.baselines && typeof plan.baselines[key] === 'number';
  const named = (plan.baseline_plans || []).map(row => row.name).filter(known);
  if (named.length === 0) return ['ddp', 'ddp_fp16'].filter(known);
  return named.sort((a, b) => plan.baselines[a] - plan.baselines[b]).slice(0, 3);
}

/** Table of the schedules and the frameworks' baselines: times, memory of a GPU, and what each gives up. */
function scheduleTable() {
  const rows = [...(plan.schedules || []).map(row => [row.schedule === plan.chosen ? row.schedule + ' (this plan)' : row.schedule, row]),
                ...(plan.baseline_plans || []).map(row => [row.name, row])];
  return table('Schedules', ['Schedule', 'Step', '8 runs of 10', 'GPU busy', 'Memory of a GPU', {words: 'Gives up'}], rows.map(([name, row]) => [
    name, shown(row.predicted_iteration_s, duration),
    html('span', null, shown(row.predicted_iteration_s_p10, duration), ' to ', shown(row.predicted_iteration_s_p90, duration)),
    shown(row.utilization, percent), shown(row.peak_memory_bytes, size),
    [row.algorithms.length ? row.algorithms.join(', ') : '', row.gives_up].filter(text => text).join('; ') || 'nothing']));
}

function comparedTimes() {
  const rows = [{name: 'This plan', mine: true, s: plan.predicted_iteration_s, p10: plan.predicted_iteration_s_p10,
                 p90: plan.predicted_iteration_s_p90}];
  for (const key of barred()) {
    rows.push({name: BASELINES[key] || key, s: plan.baselines[key], p10: plan.baselines_p10[key], p90: plan.baselines_p90[key]});
  }
  rows.push({name: 'Best without compression', s: plan.best_uncompressed_s, p10: plan.best_uncompressed_s_p10,
             p90: plan.best_uncompressed_s_p90});
  return rows.filter(row => typeof row.s === 'number');
}

/** Below this width, the text of a bar has two lines. */
const NARROW = 460;
/** A text above a bar. It has one line, or two on narrow pages. */
function words(lines, x, y, narrow, attributes) {
  if (!narrow) return svg('text', Object.assign({x, y}, attributes), lines.join(''));
  return svg('text', Object.assign({x, y}, attributes), ...lines.map((line, i) => svg('tspan', {x, dy: i ? 16 : 0}, line.trim())));
}

function drawBars(rows, width) {
  const narrow = width < NARROW, lead = narrow ? 16 : 0, high = 46 + lead, left = 8, right = 12, foot = 26;
  const most = Math.max(...rows.map(row => Math.max(row.s, row.p90 || 0)));
  const x = seconds => left + seconds / most * (width - left - right);
  const lines = row => [`${row.name}: ${duration(row.s)}`, typeof row.p10 === 'number' ? ` (${duration(row.p10)} to ${duration(row.p90)})` : ''];
  const text = row => lines(row).join('');
  const height = rows.length * high + foot;
  const made = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img',
                           'aria-label': 'Time of an iteration. ' + rows.map(text).join('; ') + '.'});
  for (const tick of ticks(0, most, width / 130)) {
    made.append(svg('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: 4, y2: height - foot + 4}),
                svg('text', {class: 'quiet', x: x(tick), y: height - 8, 'text-anchor': tick === 0 ? 'start' : x(tick) > width - 40 ? 'end' : 'middle'}, duration(tick)));
  }
  rows.forEach((row, i) => {
    made.append(words(lines(row), left, i * high + 16, narrow, {'font-weight': row.mine ? 700 : 400, 'data-value': row.s}));
    const y = i * high + lead;
    made.append(
                svg('rect', {x: left, y: y + 22, width: x(row.s) - left, height: 16, rx: 2, fill: row.mine ? 'var(--this)' : 'var(--other)'}));
    if (typeof row.p10 === 'number') {
      made.append(svg('path', {class: 'whisker', d: `M${x(row.p10)} ${y + 25}v10M${x(row.p10)} ${y + 30}H${x(row.p90)}m0 -5v10`}));
    }
  });
  return made;
}

function showComparison() {
  const place = section('comparison');
  const rows = comparedTimes();
  if (rows.length === 0) return place.append(html('p', null, 'Nothing was simulated, so there are no times to compare.'));
  place.append(html('p', {class: 'quiet'}, 'Predicted time of an iteration, shorter is better. Whiskers: 8 runs of 10 are within.'));
  figure(place, width => drawBars(rows, width));
  if (plan.traced) {
    place.append(html('p', null, 'In the trace that the model was made of, a step took ', shown(plan.traced.step_s, duration), ', of which ',
                      shown(plan.traced.exposed_communication_s, duration), ' was exposed communication.'));
  }
  if (plan.throughput) {
    const {units_per_s: speed, unit, mfu} = plan.throughput;
    place.append(html('p', null, 'All GPUs together train ', shown(speed, number => whole(Math.round(number))), ` ${unit} a second`,
                      mfu === null ? '' : html('span', null, ', at ', shown(mfu, percent), ' of their peak (MFU)'), '.'));
  }
  if (plan.schedules) place.append(scheduleTable());
  const all = Object.keys(plan.baselines || {}).filter(name => typeof plan.baselines[name] === 'number');
  const cells = all.sort((a, b) => plan.baselines[a] - plan.baselines[b]).map(name => [
    BASELINES[name] ? `${name} (${BASELINES[name]})` : name, shown(plan.baselines[name], duration),
    plan.baselines_p10[name] === null ? 'not known' :
        html('span', null, shown(plan.baselines_p10[name], duration), ' to ', shown(plan.baselines_p90[name], duration)),
    shown(plan.faster_than[name], percent)]);
  place.append(html('details', null, html('summary', null, `All ${all.length} plans that it was compared with`),
      table('Predicted iteration times', ['Plan', 'Iteration', '8 runs of 10', 'This plan is faster with probability'], cells)));
  if (plan.lower_bound_s !== null) {
    place.append(html('p', {class: 'quiet'}, 'No plan that the search could choose takes less than ',
        shown(plan.lower_bound_s, duration), '. '));
  }
}

// ---------------------------------------------------------------- learning

/** Sentence on the results of a pilot for the plan. */
function learningWords(learning) {
  const steps = share => whole(Math.round(share * learning.steps));
  const made = html('p', null, 'In a pilot, PyTorch DDP trained ', steps(1), ' steps. This plan has the same loss after ',
                    steps(learning.steps_ratio), ' (', steps(learning.steps_ratio_p10), ' to ', steps(learning.steps_ratio_p90), '), which take ',
                    shown(learning.time_to_loss_s, duration));
  if (learning.today_to_loss_s !== null) made.append('; the job’s present plan takes ', shown(learning.today_to_loss_s, duration));
  made.append('.');
  return made;
}

/** Styles of lines, which differ even without colours. */
const LINES = [{stroke: 'var(--this)', 'stroke-width': 3}, {stroke: 'var(--text)', 'stroke-width': 1.8, 'stroke-dasharray': '7 4'},
               {stroke: 'var(--Encode)', 'stroke-width': 1.8, 'stroke-dasharray': '2 3'},
               {stroke: 'var(--AllReduce)', 'stroke-width': 1.8, 'stroke-dasharray': '9 3 2 3'}];

/** Draws DDP's losses as a curve per plan, over the plan's time. Its step time and its number of steps stretch the curve. */
function drawLosses(loss, paces, width) {
  const high = 290, left = 52, right = 14, top = 12, foot = 44 + 18 * paces.length;
  const steps = loss[loss.length - 1].step, most = Math.max(...paces.map(pace => pace.to_loss_s));
  const all = loss.map(at => at.loss), low = Math.min(...all), above = Math.max(...all) - low || 1;
  const x = seconds => left + Math.min(1, seconds / most) * (width - left - right);
  const y = value => top + (1 - (value - low) / above) * (high - top - 30);
  const made = svg('svg', {viewBox: `0 0 ${width} ${high + foot - 30}`, role: 'img',
                           'aria-label': 'Training loss over predicted seconds. ' + paces.map(pace => `${pace.label}: ${duration(pace.to_loss_s)}`).join('; ') + '.'});
  for (const tick of ticks(low, low + above, 5)) {
    made.append(svg('line', {class: 'grid', x1: left, x2: width - right, y1: y(tick), y2: y(tick)}),
                svg('text', {class: 'quiet', x: left - 6, y: y(tick) + 4, 'text-anchor': 'end'}, String(Number(tick.toPrecision(3)))));
  }
  for (const tick of ticks(0, most, width / 130)) {
    made.append(svg('text', {class: 'quiet', x: x(tick), y: high - 12, 'text-anchor': x(tick) > width - 40 ? 'end' : 'middle'}, duration(tick)));
  }
  const points = key => pace => loss.map(at => `${x(at.step / steps * pace[key]).toFixed(1)} ${y(at.loss).toFixed(1)}`);
  paces.forEach(pace => made.append(svg('path', {fill: pace.look.stroke, opacity: .16,
      d: 'M' + points('to_loss_s_p10')(pace).concat(points('to_loss_s_p90')(pace).reverse()).join('L') + 'z'})));
  paces.forEach((pace, i) => {
    const below = high + 10 + 18 * i;
    made.append(svg('path', Object.assign({fill: 'none', d: 'M' + points('to_loss_s')(pace).join('L')}, pace.look)),
                svg('path', Object.assign({d: `M${left} ${below - 4}h34`}, pace.look)),
                svg('text', {x: left + 44, y: below, 'data-value': pace.to_loss_s}, `${pace.label}: ${duration(pace.to_loss_s)}`));
  });
  return made;
}

/** Draws the errors of gradients as a heat map: a darker cell is a larger error. */
function drawErrors({plans, gradients: names, errors}, width) {
  const label = Math.min(230, width * .4), each = (width - label) / plans.length, row = 20, top = 130;
  const cut = text => text.length * 6.6 > label - 8 ? '…' + text.slice(-Math.floor((label - 16) / 6.6)) : text;
  const made = svg('svg', {viewBox: `0 0 ${width} ${top + row * names.length}`, role: 'img',
                           'aria-label': `Errors of ${names.length} gradients under ${plans.join(', ')}; the numbers are in the cells.`});
  plans.forEach((plan, i) => {
    const at = label + (i + .5) * each;
    made.append(svg('text', {class: 'quiet', x: at, y: top - 8, transform: `rotate(-90 ${at + 4} ${top - 8}) translate(4 0)`}, plan));
  });
  names.forEach((name, i) => {
    made.append(svg('text', {x: label - 8, y: top + row * i + 14, 'text-anchor': 'end'}, cut(name), svg('title', null, name)));
    errors[i].forEach((error, column) => {
      if (error === null) return;
      const at = {x: label + column * each, y: top + row * i};
      made.append(svg('rect', {x: at.x, y: at.y, width: each - 1, height: row - 1, fill: 'var(--this)', 'fill-opacity': .08 + .6 * Math.min(1, error), 'data-value': error},
                      svg('title', null, `${name}, ${plans[column]}: ${percent(error)}`)));
      if (each > 26) made.append(svg('text', {x: at.x + each / 2, y: at.y + 14, 'text-anchor': 'middle', style: 'font-size:11px'}, error < 5e-4 ? '0' : Number((100 * error).toPrecision(2))));
    });
  });
  return made;
}

function showLearning() {
  const place = section('learning'), learning = plan.learning;
  if (!learning || plan.compressed === 0) return place.remove();
  place.append(learningWords(learning));
  const baselines = barred().slice(0, 3);
  const paces = learning.paces.filter(pace => pace.plan === 'this plan' || baselines.includes(pace.plan))
      .map((pace, i) => Object.assign({label: BASELINES[pace.plan] || pace.plan, look: LINES[i]}, pace));
  if (learning.loss.length > 1) {
    place.append(html('p', {class: 'quiet'}, 'Smoothed training loss of DDP in the pilot, over the predicted seconds of each plan. Bands: 8 runs of 10.'));
    figure(place, width => drawLosses(learning.loss, paces, width));
  }
  if (!data.errors || data.errors.gradients.length === 0) return;
  place.append(html('h3', null, 'What gradients lose'), html('p', {class: 'quiet'}, 'Errors in percent of a gradient’s norm, root mean squares over the pilot, of '
      + `${data.errors.gradients.length} of ${plural(data.errors.all, 'gradient')}, the largest. Residuals bring in later steps what is lost here.`));
  figure(place, width => drawErrors(data.errors, width));
}

// ---------------------------------------------------------------- the timeline

const tip = document.getElementById('tip');
function showTip(lines, x, y) {
  tip.replaceChildren(html('b', null, lines[0]), ...lines.slice(1).map(line => html('div', null, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = document.documentElement.clientWidth;
  tip.style.left = Math.max(4, Math.min(x + 14, right - box.width - 8)) + window.scrollX + 'px';
  tip.style.top = (y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18) + window.scrollY + 'px';
}
function hideTip() { tip.hidden = true; }

/** The lanes, with their spans as objects. Times are in ns. */
function readLanes(timeline) {
  return timeline.lanes.map(lane => {
    let start = 0;
    const critical = new Set(lane.critical);
    const spans = lane.start.map((step, i) => {
      start += step;
      return {start, end: start + lane.length[i], kind: timeline.kinds[lane.kind[i]], first: lane.unit[i],
              last: lane.last_unit ? lane.last_unit[i] : lane.unit[i], tasks: lane.tasks[i], amount: lane.amount[i],
              row: lane.row[i], critical: critical.has(i), lane};
    });
    const rowHeight = Math.max(5, Math.min(22, Math.floor(90 / lane.rows)));
    return {name: lane.name, rows: lane.rows, rowHeight, spans};
  });
}

function describe(span) {
  const of = span.first < 0 ? '' : span.first === span.last ? ' ' + gradients.unitName(span.first) :
      ` ${gradients.unitName(span.first)} … ${gradients.unitName(span.last)}`;
  const word = KIND_WORDS[span.kind] || span.kind;
  const lines = [word[0].toUpperCase() + word.slice(1) + of,
                 `${duration(span.start * 1e-9)} to ${duration(span.end * 1e-9)}: ${duration((span.end - span.start) * 1e-9)}`];
  const inBytes = !['Encode', 'Decode', 'Merge'].includes(span.kind);
  if (span.amount > 0) lines.push(inBytes ? size(span.amount) : whole(span.amount) + ' elements');
  if (span.tasks > 1) lines.push(plural(span.tasks, inBytes && span.kind !== 'Backward' ? 'message' : 'task'));
  if (span.first === span.last && span.first >= gradients.all) {
    const members = gradients.membersOf(span.first);
    lines.push(`a group of ${members.length}: ` + members.slice(0, 4).map(row => row.name).join(', ') + (members.length > 4 ? ' …' : ''));
  }
  if (span.critical) lines.push('On the critical path');
  return lines;
}

/** Picture of the lanes between two times. It can be moved and zoomed. */
class TimelineView {
  constructor(place, timeline) {
    this.timeline = timeline;
    this.lanes = readLanes(timeline);
    this.end = Math.max(timeline.iteration_ns, 1);
    this.from = 0;
    this.to = this.end;
    this.wanted = null;  // units that the user searches for
    this.picked = null;  // {lane, place} of the span with the keyboard's focus
    this.pointers = new Map();
    this.holder = html('figure');
    this.status = html('span', {class: 'quiet', role: 'status', 'aria-live': 'polite'});
    place.append(this.makeTools(), this.holder);
    this.kindsShown = [...new Set(this.lanes.flatMap(lane => lane.spans.map(span => span.kind)))];
    place.append(legend(this.kindsShown));
    const redraw = () => this.draw();
    drawings.push(redraw);
    this.draw();
    this.listen();
  }

  makeTools() {
    this.find = html('input', {type: 'search', id: 'find', placeholder: 'Find a gradient', 'aria-label': 'Find a gradient in the timeline',
                               autocomplete: 'off', input: () => this.look(this.find.value),
                               keydown: event => { if (event.key === 'Enter') this.zoomToFound(); }});
    const button = (text, label, act) => html('button', {type: 'button', 'aria-label': label, title: label, click: act}, text);
    return html('div', {class: 'tools'}, this.find, button('Show', 'Zoom to what was found', () => this.zoomToFound()),
                button('+', 'Zoom in', () => this.zoom(.5)), button('−', 'Zoom out', () => this.zoom(2)),
                button('←', 'Earlier', () => this.move(-.25)), button('→', 'Later', () => this.move(.25)),
                button('All', 'The whole iteration', () => this.look_at(0, this.end)), this.status);
  }

  look_at(from, to) {
    const least = Math.min(this.end, 50);
    const length = Math.min(this.end, Math.max(least, to - from));
    this.from = Math.max(0, Math.min(from, this.end - length));
    this.to = this.from + length;
    this.draw();
  }
  zoom(factor, about) {
    const middle = about === undefined ? (this.from + this.to) / 2 : about;
    this.look_at(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }
  move(share) { this.look_at(this.from + share * (this.to - this.from), this.to + share * (this.to - this.from)); }

  isWanted(span) {
    if (this.wanted === null) return true;
    for (let unit = span.first; unit >= 0 && unit <= span.last; ++unit) if (this.wanted.has(unit)) return true;
    return false;
  }

  /** Marks the gradients whose names contain the text. */
  look(text) {
    const sought = text.trim().toLowerCase();
    this.found = sought === '' ? [] : gradients.rows.filter(row => row.name.toLowerCase().includes(sought));
    this.wanted = sought === '' ? null : new Set(this.found.flatMap(row => [row.index, row.unit]));
    this.status.replaceChildren();
    if (sought !== '') {
      const first = this.found[0];
      this.status.append(this.found.length === 0 ? `no gradient has “${sought}” in its name` : plural(this.found.length, 'gradient'));
      if (this.found.length === 1) {
        this.status.append(': ready ', duration(this.timeline.forward_ns * 1e-9 + first.ready), ', synchronised ', duration(first.done));
      }
    }
    this.draw();
  }
  zoomToFound() {
    if (this.wanted === null) return;
    const found = this.lanes.flatMap(lane => lane.spans.filter(span => this.isWanted(span)));
    if (found.length === 0) return;
    const from = Math.min(...found.map(span => span.start)), to = Math.max(...found.map(span => span.end));
    const margin = (to - from) * .1;
    this.look_at(from - margin, to + margin);
  }

  x(time) { return (time - this.from) / (this.to - this.from) * this.width; }
  time(x) { return this.from + x / this.width * (this.to - this.from); }

  draw() {
    this.width = Math.max(280, Math.floor(this.holder.clientWidth || 0));
    const top = 24, title = 18;
    let y = top;
    for (const lane of this.lanes) {
      lane.top = y + title;
      y = lane.top + lane.rows * lane.rowHeight + 8;
    }
    this.foot = y;
    this.height = y + 18;
    if (!this.svg) {
      this.svg = svg('svg', {role: 'application', tabindex: 0, 'aria-roledescription': 'timeline',
                             'aria-label': 'Timeline of one node. Arrows move, plus and minus zoom, N and P go from task to task.'});
      this.holder.append(this.svg);
    }
    this.svg.setAttribute('viewBox', `0 0 ${this.width} ${this.height}`);
    this.svg.replaceChildren(...this.axis(), ...this.lanes.flatMap(lane => this.drawLane(lane)), ...this.marks(), ...this.pick());
  }

  axis() {
    const made = [];
    for (const tick of ticks(this.from, this.to, this.width / 110)) {
      const x = this.x(tick);
      made.push(svg('line', {class: 'grid', x1: x, x2: x, y1: 18, y2: this.foot}),
                svg('text', {class: 'quiet', x, y: 13, 'text-anchor': x < 25 ? 'start' : x > this.width - 35 ? 'end' : 'middle'},
                    tick === 0 ? '0' : this.tickText(tick)));
    }
    return made;
  }
  /** Text of a tick, with enough digits to tell it from its neighbours. */
  tickText(tick) {
    const seconds = tick * 1e-9, length = (this.to - this.from) * 1e-9;
    const [name, unit] = DURATIONS.find(([, least]) => this.to * 1e-9 >= least) || DURATIONS[3];
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(length / unit / 10))));
    return (seconds / unit).toFixed(digits) + ' ' + name;
  }

  drawLane(lane) {
    const paths = new Map(), critical = [], texts = [];
    const height = lane.rowHeight - 1;
    for (const span of lane.spans) {
      if (span.end < this.from || span.start > this.to) continue;
      const x = Math.max(-1, this.x(span.start)), width = Math.max(.7, Math.min(this.width + 1, this.x(span.end)) - x);
      const y = lane.top + span.row * lane.rowHeight;
      const wanted = this.isWanted(span);
      const key = span.kind + (wanted ? '' : ' dim');
      if (!paths.has(key)) paths.set(key, []);
      paths.get(key).push(`M${x.toFixed(1)} ${y}h${width.toFixed(1)}v${height}h${(-width).toFixed(1)}z`);
      if (span.critical && wanted) critical.push(`M${x.toFixed(1)} ${y + height}h${width.toFixed(1)}`);
      if (width > 50 && height > 12 && wanted) texts.push(this.inside(span, Math.max(0, x), y + height - 6, width));
    }
    const shapes = [...paths].map(([key, parts]) => {
      const [kind, dim] = key.split(' ');
      return svg('path', {d: parts.join(''), fill: `var(--${kind})`, class: dim || null});
    });
    return [svg('text', {class: 'quiet', x: 4, y: lane.top - 5}, lane.name), ...shapes,
            svg('path', {d: critical.join(''), stroke: 'var(--text)', 'stroke-width': 2.5, fill: 'none'}), ...texts];
  }
  inside(span, x, y, width) {
    const name = span.first < 0 ? KIND_WORDS[span.kind] : gradients.unitName(span.first);
    const room = Math.floor(width / 6.6) - 1;
    const dark = span.kind === 'Forward' || span.kind === 'Send';
    // Names of gradients differ most at their ends.
    return svg('text', {class: dark ? 'inside on-dark' : 'inside', x: x + 3, y}, name.length <= room ? name : '…' + name.slice(name.length - room + 1));
  }

  marks() {
    const mark = (time, text) => {
      const x = this.x(time);
      if (x < 0 || x > this.width) return [];
      return [svg('line', {class: 'mark', x1: x, x2: x, y1: 18, y2: this.foot + 3}),
              svg('text', {class: 'quiet', x, y: this.height - 3, 'text-anchor': x < 60 ? 'start' : x > this.width - 60 ? 'end' : 'middle'}, text)];
    };
    return [...mark(this.timeline.forward_ns, 'backward begins'), ...mark(this.timeline.compute_ns, 'computation ends')];
  }

  pick() {
    if (!this.picked) return [];
    const {lane, place} = this.picked, span = lane.spans[place];
    return [svg('rect', {class: 'outline', x: this.x(span.start) - 1.5, y: lane.top + span.row * lane.rowHeight - 1.5,
                         width: Math.max(3, this.x(span.end) - this.x(span.start) + 3), height: lane.rowHeight + 2, 'stroke-width': 2})];
  }

  /** Span nearest to a point of the screen, within three pixels since many spans are narrow; null if there is none. */
  at(clientX, clientY) {
    const box = this.svg.getBoundingClientRect();
    const x = (clientX - box.left) * this.width / box.width, y = (clientY - box.top) * this.height / box.height;
    const lane = this.lanes.find(one => y >= one.top - 2 && y < one.top + one.rows * one.rowHeight + 2);
    if (!lane) return null;
    const row = Math.max(0, Math.min(lane.rows - 1, Math.floor((y - lane.top) / lane.rowHeight)));
    let best = null, least = 3;
    for (const span of lane.spans) {
      if (span.row !== row) continue;
      const away = Math.max(this.x(span.start) - x, x - this.x(span.end), 0);
      if (away < least || (away === least && best === null)) [best, least] = [span, away];
      if (away === 0) break;
    }
    return best;
  }

  listen() {
    const timeAt = event => {
      const box = this.svg.getBoundingClientRect();
      return this.time((event.clientX - box.left) * this.width / box.width);
    };
    this.svg.addEventListener('wheel', event => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : .8, timeAt(event));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.move(event.deltaX / this.width);
      }
    }, {passive: false});
    this.svg.addEventListener('dblclick', event => this.zoom(event.shiftKey ? 2 : .5, timeAt(event)));
    this.svg.addEventListener('pointerdown', event => {
      this.pointers.set(event.pointerId, event.clientX);
      this.svg.setPointerCapture(event.pointerId);
      this.svg.classList.add('moving');
      this.hover(event);
    });
    for (const name of ['pointerup', 'pointercancel']) {
      this.svg.addEventListener(name, event => {
        this.pointers.delete(event.pointerId);
        if (this.pointers.size === 0) this.svg.classList.remove('moving');
      });
    }
    this.svg.addEventListener('pointermove', event => this.pointerMoved(event));
    this.svg.addEventListener('pointerleave', hideTip);
    this.svg.addEventListener('blur', hideTip);
    this.svg.addEventListener('keydown', event => this.key(event));
  }

  pointerMoved(event) {
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) return this.hover(event);
    const box = this.svg.getBoundingClientRect();
    const scale = (this.to - this.from) / box.width;
    if (this.pointers.size === 1) {
      const by = (before - event.clientX) * scale;
      if (by !== 0) this.look_at(this.from + by, this.to + by);
    } else {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const now = Math.abs(event.clientX - other), was = Math.abs(before - other);
      if (now > 10 && was > 10) this.zoom(was / now, this.from + (other - box.left) * scale);
    }
    this.pointers.set(event.pointerId, event.clientX);
    hideTip();
  }
  hover(event) {
    const span = this.at(event.clientX, event.clientY);
    if (span) showTip(describe(span), event.clientX, event.clientY);
    else hideTip();
  }

  key(event) {
    const steps = {n: 1, p: -1, N: 1, P: -1};
    const acts = {ArrowLeft: () => this.move(-.25), ArrowRight: () => this.move(.25), '+': () => this.zoom(.5), '=': () => this.zoom(.5),
                  '-': () => this.zoom(2), 0: () => this.look_at(0, this.end), Escape: hideTip};
    if (steps[event.key]) this.step(steps[event.key]);
    else if (acts[event.key]) acts[event.key]();
    else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') this.changeLane(event.key === 'ArrowDown' ? 1 : -1);
    else return;
    event.preventDefault();
  }
  step(by) {
    const at = this.picked || {lane: this.lanes[0], place: -1};
    this.goTo(at.lane, Math.max(0, Math.min(at.lane.spans.length - 1, at.place + by)));
  }
  changeLane(by) {
    const at = this.picked || {lane: this.lanes[0], place: 0};
    const lane = this.lanes[Math.max(0, Math.min(this.lanes.length - 1, this.lanes.indexOf(at.lane) + by))];
    const time = at.lane.spans[at.place].start;
    const place = lane.spans.findIndex(span => span.end >= time);
    this.goTo(lane, place < 0 ? lane.spans.length - 1 : place);
  }
  goTo(lane, place) {
    this.picked = {lane, place};
    const span = lane.spans[place];
    if (span.start < this.from || span.end > this.to) {
      const half = Math.max(this.to - this.from, 2 * (span.end - span.start)) / 2, middle = (span.start + span.end) / 2;
      this.look_at(middle - half, middle + half);
    } else {
      this.draw();
    }
    const box = this.svg.getBoundingClientRect(), scale = box.width / this.width;
    showTip(describe(span), box.left + this.x(span.start) * scale, box.top + (lane.top + span.row * lane.rowHeight) * scale);
    this.status.replaceChildren(describe(span).join(', '));
  }
}

let view = null;
function showTimeline() {
  const place = section('timeline');
  const timeline = data.timeline;
  if (!timeline) return place.append(html('p', null, `There is no timeline: ${data.no_timeline}.`));
  const which = timeline.folded ? 'Every node does the same; one is shown' : `Node ${timeline.node} is shown, where the iteration ends last`;
  place.append(html('p', {class: 'quiet'}, which + ': ', plural(timeline.tasks, 'task'), timeline.folded ? ' a node' : ' on all nodes',
      timeline.gap_ns > 0 ? `, neighbours less than ${duration(timeline.gap_ns * 1e-9)} apart drawn as one` : '',
      '. A line below a task: it is on the critical path. Drag to move; Ctrl and wheel, pinch or double-click to zoom.'));
  if (timeline.diagnostic) place.append(html('p', {class: 'warning'}, timeline.diagnostic));
  view = new TimelineView(place, timeline);
  place.append(html('p', null, 'The iteration takes ', shown(timeline.iteration_s, duration), '. Computation ends after ',
      shown(timeline.compute_s, duration), '; the ', shown(timeline.exposed_communication_s, duration),
      ' behind it are exposed communication.'));
}

// ---------------------------------------------------------------- the critical path

function drawShares(shares, label, width) {
  const made = svg('svg', {viewBox: `0 0 ${width} 30`, role: 'img',
                           'aria-label': label + ': ' + Object.entries(shares).map(([kind, share]) => `${KIND_WORDS[kind] || kind} ${percent(share)}`).join(', ')});
  let x = 0;
  for (const [kind, share] of Object.entries(shares)) {
    const wide = share * width;
    made.append(svg('rect', {x, y: 2, width: Math.max(0, wide - 1), height: 26, fill: `var(--${kind})`, 'data-value': share},
                    svg('title', null, `${KIND_WORDS[kind] || kind}: ${percent(share)}`)));
    x += wide;
  }
  return made;
}

function showPath() {
  const place = section('path');
  const path = data.critical_path;
  if (!path) return place.append(html('p', null, 'Without a timeline, there is no critical path.'));
  place.append(html('p', {class: 'quiet'}, 'The critical path is the chain of tasks that decides when the iteration ends: only shortening one of them helps.'));
  const kinds = [...new Set([...Object.keys(path.share), ...Object.keys(path.exposed_share)])];
  place.append(html('h3', null, 'Of the whole iteration'));
  figure(place, width => drawShares(path.share, 'The critical path by kind of task', width));
  if (Object.keys(path.exposed_share).length > 0) {
    place.append(html('h3', null, 'Of the exposed communication'));
    figure(place, width => drawShares(path.exposed_share, 'Exposed communication by kind of task', width));
  }
  place.append(legend(kinds));
  const share = (of, kind) => (kind in of ? shown(of[kind], percent) : '–');
  place.append(table('The critical path by kind of task', ['Kind', 'Of the iteration', 'Of exposed communication'],
      kinds.map(kind => [KIND_WORDS[kind] || kind, share(path.share, kind), share(path.exposed_share, kind)])));
  const what = run => run.unit < 0 ? 'computation' : gradients.unitName(run.unit);
  const parts = run => html('span', null, ...Object.entries(run.by_kind).flatMap(([kind, s], i) =>
      [i ? ', ' : '', (KIND_WORDS[kind] || kind) + ' ', shown(s, duration)]));
  place.append(html('details', null, html('summary', null, 'Its ' + plural(path.runs.length, path.others ? 'longest part' : 'part') + ', in order of time'),
      table(path.others ? html('span', null, `${whole(path.others)} shorter parts, which are left out, take `, shown(path.others_s, duration), ' together') :
          'The whole path', ['What', 'From', 'Takes', {words: 'Made of'}],
          path.runs.map(run => [what(run), shown(run.start_s, duration), shown(run.length_s, duration), parts(run)]))));
}

// ---------------------------------------------------------------- what other machines would bring

function drawChanges(rows, width) {
  const narrow = width < NARROW, lead = narrow ? 16 : 0, high = 44 + lead, left = 8, right = 8;
  const most = Math.max(...rows.map(row => Math.abs(row.change_s)));
  const loses = rows.some(row => row.change_s > 0);
  const zero = loses ? width / 2 : left;
  const scale = (width - right - zero) / most;
  const lines = row => [row.help + ':', ` ${duration(Math.abs(row.change_s))} ${row.change_s < 0 ? 'less' : 'more'}`];
  const made = svg('svg', {viewBox: `0 0 ${width} ${rows.length * high + 4}`, role: 'img', 'aria-label': rows.map(row => lines(row).join('')).join('; ')});
  rows.forEach((row, i) => {
    const long = Math.abs(row.change_s) * scale;
    made.append(words(lines(row), left, i * high + 16, narrow, {'data-value': row.change_s}),
                svg('rect', {x: row.change_s < 0 ? zero : zero - long, y: i * high + 22 + lead, width: Math.max(1, long), height: 14, rx: 2,
                             fill: row.change_s < 0 ? 'var(--this)' : 'var(--Encode)'}));
  });
  if (loses) made.append(svg('line', {class: 'grid', x1: zero, x2: zero, y1: 0, y2: rows.length * high}));
  return made;
}

function showSensitivity() {
  const place = section('sensitivity');
  const all = data.sensitivity;
  if (!all) return place.append(html('p', {class: 'quiet'}, 'Not analysed: it would take many simulations of a large graph. hipress-sim --sensitivity does it.'));
  const rows = all.filter(row => row.change_s !== 0).sort((a, b) => a.change_s - b.change_s);
  if (rows.length === 0) return place.append(html('p', null, 'Nothing: no resource alone would make this plan’s iteration shorter.'));
  place.append(html('p', {class: 'quiet'}, 'How much shorter an iteration of this plan would be if one thing were 10 % better, with all else unchanged.'));
  figure(place, width => drawChanges(rows, width));
  const none = all.filter(row => row.change_s === 0).map(row => row.name.replace(/_/g, ' '));
  if (none.length > 0) place.append(html('p', {class: 'quiet'}, 'It would not change with more of: ' + none.join(', ') + '.'));
}

/** Value of a break-even's quantity, with its unit. */
function inQuantity(value, unit) {
  if (unit === 'B/s') return inUnits(8 * value, [['Tbit/s', 1e12], ['Gbit/s', 1e9], ['Mbit/s', 1e6], ['kbit/s', 1e3], ['bit/s', 1]], '0 bit/s');
  return unit === 's' ? duration(value) : plural(Math.round(value), 'node');
}
function factor(times) { return String(Number(times.toPrecision(DIGITS))) + ' ×'; }

/** Round speed-ups between `from` and `to`. They are closer to each other around 1. */
function speedups(from, to) {
  const found = [.8, .9, 1.1, 1.25, 1.5];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); ++power) found.push(...[1, 2, 5].map(digit => digit * Math.pow(10, power)));
  return found.filter(one => one >= from && one <= to).sort((a, b) => a - b).map(one => Number(one.toPrecision(3)));
}

/** Draws speed-ups on a logarithmic scale: 2 is as far above 1 as 1/2 is below. */
function drawBreakEven(found, curve, width) {
  const high = 270, left = 48, right = 14, top = 12, foot = 44;
  const log = Math.log, x0 = log(curve[0].value), x1 = log(curve[curve.length - 1].value);
  const y0 = Math.min(.95, ...curve.map(at => at.speedup_p10)) * .98, y1 = Math.max(1.05, ...curve.map(at => at.speedup_p90)) * 1.02;
  const x = value => left + (log(value) - x0) / Math.max(1e-9, x1 - x0) * (width - left - right);
  const y = speedup => top + (log(y1) - log(speedup)) / (log(y1) - log(y0)) * (high - top - foot);
  const made = svg('svg', {viewBox: `0 0 ${width} ${high}`, role: 'img',
                           'aria-label': `Speed-up by compression over ${found.quantity}. ` + found.sentences.join('. ')});
  let free = Infinity;
  for (const step of speedups(y0, y1)) {
    made.append(svg('line', {class: step === 1 ? 'mark' : 'grid', x1: left, x2: width - right, y1: y(step), y2: y(step)}));
    if (free - y(step) < 16 && step !== 1) continue;
    free = y(step);
    made.append(svg('text', {class: 'quiet', x: left - 6, y: y(step) + 4, 'text-anchor': 'end'}, step + ' ×'));
  }
  // Labels that would overlap the previous one are left out.
  let taken = -Infinity;
  curve.forEach((at, i) => {
    if (x(at.value) - taken < 135) return;
    taken = x(at.value);
    made.append(svg('text', {class: 'quiet', x: x(at.value), y: high - foot + 18, 'data-value': at.value,
                             'text-anchor': i === 0 ? 'start' : x(at.value) > width - 50 ? 'end' : 'middle'}, inQuantity(at.value, found.unit)));
  });
  const line = key => curve.map(at => `${x(at.value).toFixed(1)} ${y(at[key]).toFixed(1)}`);
  made.append(svg('path', {d: 'M' + line('speedup_p90').concat(line('speedup_p10').reverse()).join('L') + 'z', fill: 'var(--this)', opacity: .22}),
              svg('path', {d: 'M' + line('speedup').join('L'), stroke: 'var(--this)', 'stroke-width': 2.5, fill: 'none'}));
  if (found.given >= curve[0].value && found.given <= curve[curve.length - 1].value) {
    const at = x(found.given);
    made.append(svg('line', {class: 'whisker', x1: at, x2: at, y1: top, y2: high - foot + 22}),
                svg('text', {x: at, y: high - 4, 'text-anchor': at < 60 ? 'start' : at > width - 60 ? 'end' : 'middle', 'data-value': found.given},
                    `this job: ${inQuantity(found.given, found.unit)}`));
  }
  for (const turn of found.turns) {
    if (turn.value < curve[0].value || turn.value > curve[curve.length - 1].value) continue;
    made.append(svg('circle', {cx: x(turn.value), cy: y(1), r: 5, fill: 'var(--Encode)', stroke: 'var(--text)', 'data-value': turn.value},
                    svg('title', null, inQuantity(turn.value, found.unit))));
  }
  return made;
}

function showBreakEven() {
  const place = section('break-even');
  const found = plan.break_even;
  if (!found) return place.append(html('p', {class: 'quiet'}, 'Not computed. To show it here, plan with --break-even bandwidth, nodes, latency or compute-time.'));
  place.append(...found.sentences.map(one => html('p', null, one[0].toUpperCase() + one.slice(1) + '.')));
  const curve = found.curve.filter(at => typeof at.speedup === 'number');
  if (curve.length < 2) return;
  place.append(html('p', {class: 'quiet'}, 'Speed-up of the fastest plan that compresses over the fastest that does not, with plans made anew for each value. '
      + 'Band: 8 runs of 10. Dots: values at which the verdict changes.'));
  figure(place, width => drawBreakEven(found, curve, width));
  const cells = curve.map(at => [shown(at.value, value => inQuantity(value, found.unit)), shown(at.compressed_s, duration),
      shown(at.uncompressed_s, duration), shown(at.speedup, factor), html('span', null, shown(at.speedup_p10, factor), ' to ', shown(at.speedup_p90, factor)), at.advice]);
  place.append(html('details', null, html('summary', null, 'The curve as a table'),
      table('Predicted iteration times over ' + found.quantity, ['Value', 'Compressing', 'Without', 'Speed-up', '8 runs of 10', {words: 'Advice'}], cells)));
}

/** Shows the advice of hipress-plan, if it was requested. */
function showWords() {
  const place = section('words');
  place.hidden = !plan.in_words || plan.in_words.length === 0;
  if (!place.hidden) place.append(html('ul', null, ...plan.in_words.map(one => html('li', null, one[0].toUpperCase() + one.slice(1)))));
}

// ---------------------------------------------------------------- the plan

const COLUMNS = [['Gradient', 'name', false], ['Elements', 'elements', true], ['Size', 'bytes', true], ['Ready', 'ready', true],
                 ['Synchronised', 'done', true], ['Algorithm', 'algorithm', false], ['K', 'K', true], ['Group', 'group', false],
                 ['Where it stands', 'why', false]];
const AT_ONCE = 500;

class PlanTable {
  constructor(place) {
    this.by = 'bytes';
    this.down = true;
    this.most = AT_ONCE;
    this.filter = html('input', {type: 'search', placeholder: 'Filter: name, algorithm or group', 'aria-label': 'Filter the gradients',
                                 autocomplete: 'off', input: () => this.draw()});
    this.count = html('span', {class: 'quiet', role: 'status', 'aria-live': 'polite'});
    this.more = html('button', {type: 'button', click: () => { this.most = Infinity; this.draw(); }}, 'Show all');
    this.columns = COLUMNS.filter(([, key]) => gradients.rows.some(row => row[key]));
    this.heads = this.columns.map(([title, key]) => html('th', {scope: 'col'},
        html('button', {type: 'button', click: () => this.sort(key)}, title)));
    this.body = html('tbody');
    place.append(html('div', {class: 'tools'}, this.filter, this.count), html('div', {class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'Gradients'},
        html('table', null, html('thead', null, html('tr', null, ...this.heads)), this.body)), this.more);
    this.draw();
  }
  sort(key) {
    const numeric = COLUMNS.find(([, name]) => name === key)[2];
    this.down = this.by === key ? !this.down : numeric;
    this.by = key;
    this.draw();
  }
  draw() {
    const sought = this.filter.value.trim().toLowerCase();
    const found = gradients.rows.filter(row => [row.name, row.algorithm, row.group, row.why].some(text => text.toLowerCase().includes(sought)));
    const order = this.down ? -1 : 1, by = this.by;
    found.sort((a, b) => (a[by] < b[by] ? -order : a[by] > b[by] ? order : a.index - b.index));
    this.columns.forEach(([, key], i) => this.heads[i].setAttribute('aria-sort', key !== by ? 'none' : this.down ? 'descending' : 'ascending'));
    const rows = found.slice(0, this.most);
    const left = gradients.all - gradients.rows.length;
    this.count.textContent = `${plural(found.length, 'gradient')} of ${whole(gradients.all)}` + (left ? `; the ${whole(left)} smallest are not in this page` : '');
    this.more.hidden = rows.length === found.length;
    const cell = {name: row => row.name, elements: row => whole(row.elements), bytes: row => size(row.bytes), ready: row => duration(row.ready),
                  done: row => (row.done ? duration(row.done) : '–'), algorithm: row => row.algorithm, K: row => (row.group ? '–' : String(row.K)), group: row => row.group,
                  why: row => row.why};
    this.body.replaceChildren(...rows.map(row => html('tr', null, ...this.columns.map(([, key]) =>
        html('td', {title: key === 'name' ? row.name : null}, cell[key](row))))));
  }
}

function showPlan() {
  const place = section('plan');
  const groups = data.gradients.groups;
  place.append(html('p', null, shown(plan.compressed, whole), ' of ', shown(plan.gradients, whole), ' gradients are compressed, by ', plan.topology,
      plan.raw_topology !== plan.topology ? ` (${plan.raw_topology} where nothing is compressed)` : '',
      groups ? `; small ones travel together in ${plural(groups, 'group')}` : '', '.'));
  place.append(html('p', {class: 'quiet'}, 'Ready: after backward begins. Synchronised: on all nodes, after the iteration begins. K: number of slices of a gradient.'));
  new PlanTable(place);
  if (data.about.output) place.append(html('p', {class: 'quiet'}, 'The plan is also in the file ', html('code', null, data.about.output), '.'));
}

// ---------------------------------------------------------------- what it rests on

function showGrounds() {
  const place = section('grounds');
  const about = data.about, profile = about.profile, model = about.model;
  const entry = (name, ...what) => [html('dt', null, name), html('dd', null, ...what)];
  const origin = {measured: 'measured', derived: 'derived from published figures', estimated: 'estimated, not measured', published: 'published by others'};
  place.append(html('dl', null,
      ...entry('Machines', about.machines),
      ...entry('Costs', `profile ${profile.name}: ${origin[profile.origin] || profile.origin}`, about.profile_given ? '' : ' (the default, since none was given)'),
      ...entry('Their source', profile.source), ...entry('Hardware', profile.hardware || 'unknown'),
      ...entry('Measurements', profile.samples ? `${plural(profile.samples, 'sample')} in the profile` : 'none in the profile',
               profile.shared_host ? ', all ranks on one machine' : ''),
      ...entry('Intervals', profile.spread_in_words),
      ...entry('Model', `${model.name || 'without a name'}: `, shown(model.gradients, count => plural(count, 'gradient')), ', ', shown(model.elements, count => whole(count) + ' elements')),
      ...entry('Its source', model.source || 'unknown'),
      ...entry('Computation', 'forward ', shown(model.forward_s, duration), ', backward ', shown(model.backward_s, duration), model.forward_s + model.backward_s === 0 ? ' (not known)' : ''),
      ...entry('Network', about.network === 'fair' ? 'messages share links fairly' : 'one message at a time on each port', `; order of transfers: ${about.transfer_order}`),
      ...entry('Search', about.search ? html('span', null, about.search + ', ', shown(plan.evaluations, count => plural(count, 'plan')), ' tried in ', shown(plan.search_s, duration)) : 'none: the plan was given'),
      ...entry('Profile file', html('code', null, profile.fingerprint || 'none')),
      ...entry('Planned by', `hipress-plan ${about.tool}`)));
  const list = (title, all) => {
    if (all.length > 0) place.append(html('h3', null, title), html('ul', null, ...all.map(one => html('li', null, one))));
  };
  list('What the planner noted', [...new Set(data.said)]);
  list('Notes of the profile', profile.notes);
}

// ---------------------------------------------------------------- the page

function chooseTheme() {
  const button = document.getElementById('theme');
  const dark = () => document.documentElement.dataset.theme === 'dark' ||
      (!document.documentElement.dataset.theme && window.matchMedia('(prefers-color-scheme: dark)').matches);
  const name = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
  button.hidden = false;
  button.addEventListener('click', () => { document.documentElement.dataset.theme = dark() ? 'light' : 'dark'; name(); });
  name();
}
/** Opens folded parts for printing, since paper has no buttons, and folds them again afterwards. */
function openForPrint() {
  let opened = [];
  window.addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    opened.forEach(one => { one.open = true; });
  });
  window.addEventListener('afterprint', () => opened.forEach(one => { one.open = false; }));
}

chooseTheme();
openForPrint();
for (const show of [showComparison, showLearning, showTimeline, showPath, showSensitivity, showBreakEven, showWords, showPlan, showGrounds]) show();
})();
