// Runs machines in the npm package xstate and writes the states that it reaches:
//
//	node reach.mjs FOLDER EVENTS
//
// FOLDER has NAME.json, the configuration of a machine with its maps of guards, actions, delays and actors, for each
// NAME.events.json of the folder EVENTS, what happens to it; FOLDER/NAME.reached.json is written. Time is simulated. The
// maps are in CEL and in the words of definitions; this script knows the part of them that is JavaScript as well.
import {readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {and, assign, cancel, createActor, createMachine, enqueueActions, fromPromise, log, not, or, raise, stateIn} from 'xstate';

// Clock is a clock that stands still until it is moved. Each timer fires at its own time, those of the same time in the
// order in which they began.
class Clock {
  time = 0;
  next = 1;
  timers = new Map();
  now() { return this.time; }
  setTimeout(call, delay) {
    this.timers.set(this.next, {call, due: this.time + delay, id: this.next});
    return this.next++;
  }
  clearTimeout(id) { this.timers.delete(id); }
  async wait(time) {
    const until = this.time + time;
    for (;;) {
      const due = [...this.timers.values()].filter((t) => t.due <= until).sort((a, b) => a.due - b.due || a.id - b.id);
      if (due.length === 0) break;
      this.time = Math.max(this.time, due[0].due);
      this.timers.delete(due[0].id);
      due[0].call();
      await settled();
    }
    this.time = until;
  }
}

// settled waits until promises that are done have been heard.
const settled = () => new Promise((done) => setImmediate(done));

// seen is an event as expressions see it.
function seen(event) {
  if (event.type.startsWith('xstate.done.state.')) return {name: event.type, data: event.output};
  if (event.type.startsWith('xstate.done.actor.')) return {name: event.type, data: {output: event.output}};
  if (event.type.startsWith('xstate.error.actor.')) return {name: event.type, data: {message: event.error.message}};
  const {type, ...data} = event;
  return {name: type, data};
}

const inner = (text) => (text.startsWith('${') && text.endsWith('}') ? text.slice(2, -1) : undefined);

// unbound writes cel.bind(params, VALUE, EXPRESSION) as JavaScript.
function unbound(text) {
  const head = 'cel.bind(params, ';
  const at = text.indexOf(head);
  if (at < 0) return text;
  const parts = [''];
  let depth = 0;
  let quote = '';
  let i = at + head.length;
  for (; ; i++) {
    const c = text[i];
    if (c === undefined) throw new Error(`cel.bind without an end: ${text}`);
    if (quote !== '') {
      if (c === '\\') parts[parts.length - 1] += text[i++];
      else if (c === quote) quote = '';
    } else if (c === '"' || c === "'") quote = c;
    else if ('([{'.includes(c)) depth++;
    else if (')]}'.includes(c) && depth-- === 0) break;
    else if (c === ',' && depth === 0 && parts.length === 1) {
      parts.push('');
      continue;
    }
    parts[parts.length - 1] += text[i];
  }
  return `${text.slice(0, at)}((params) => (${unbound(parts[1])}))(${parts[0]})${unbound(text.slice(i + 1))}`;
}

// Values of a run: the context is svcPublic; constants and the name of the user are those of the definition.
class Scope {
  constructor(kept, context, event, params, active) {
    this.kept = kept;
    this.context = context;
    this.event = seen(event);
    this.params = params;
    this.active = active;
  }
  evaluate(text) {
    const js = unbound(inner(text) ?? text).replace(/\bconst\./g, 'constants.');
    const names = ['svcPublic', 'svcPrivate', 'event', 'params', 'constants', 'user', 'In', 'size', 'string', 'has'];
    const call = new Function(...names, `return (${js})`);
    return call(this.context, {}, this.event, this.params, this.kept.constants, {id: 'john', roles: [], privileges: []},
      (name) => this.active(name), (x) => x.length, String, (x) => x !== undefined);
  }
  value(v) {
    if (typeof v === 'string') return inner(v) === undefined ? v : this.evaluate(v);
    if (Array.isArray(v)) return v.map((x) => this.value(x));
    if (v && typeof v === 'object') return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, this.value(x)]));
    return v;
  }
}

function set(target, path, value) {
  const last = path.pop();
  for (const key of path) target = target[key] ??= {};
  target[last] = value;
}

const list = (x) => (x === undefined || x === null ? [] : Array.isArray(x) ? x : [x]);

// duration is a delay of a definition in milliseconds.
function duration(v) {
  if (typeof v === 'number') return v;
  if (/^\d+$/.test(v)) return Number(v);
  const m = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/.exec(v);
  if (!m) throw new Error(`no duration: ${v}`);
  return (((Number(m[1] ?? 0) * 24 + Number(m[2] ?? 0)) * 60 + Number(m[3] ?? 0)) * 60 + Number(m[4] ?? 0)) * 1000;
}

// Implementations makes what the maps of a configuration say.
class Implementations {
  constructor(config) {
    this.config = config;
    this.constants = config.meta?.troupe?.definition?.const ?? {};
    this.latest = undefined; // the end of the actor that began last
  }

  all() {
    const {guards = {}, actions = {}, delays = {}, actors = {}} = this.config;
    const map = (o, f) => Object.fromEntries(Object.entries(o).map(([k, v]) => [k, f(v, k)]));
    return {
      guards: map(guards, (g) => (typeof g === 'string' ? this.guard(g) : this.combined(g))),
      actions: map(actions, (a) => this.action(a)),
      delays: map(delays, (d) => (typeof d === 'string' && inner(d) !== undefined
        ? ({context, event}) => duration(new Scope(this, context, event).evaluate(d)) : duration(d))),
      actors: map(actors, () => fromPromise(() => new Promise((done, fail) => { this.latest = {done, fail}; }))),
    };
  }

  // guard is a condition. Without params it sees the snapshot, for In.
  guard(text) {
    if (/\bparams\b/.test(text)) return ({context, event}, params) => new Scope(this, context, event, params).evaluate(text);
    const g = () => {};
    g.check = (snapshot, {context, event}) => new Scope(this, context, event, undefined, (name) => isIn(snapshot, name)).evaluate(text);
    return g;
  }

  // combined turns guards that JSON can write into XState's own.
  combined(g) {
    if (typeof g === 'string' || this.config.guards?.[g.type]) return g;
    const inside = () => list(g.guards ?? g.guard ?? g.children).map((x) => this.combined(x));
    switch (g.type.replace('xstate.', '')) {
      case 'and': return and(inside());
      case 'or': return or(inside());
      case 'not': return not(inside()[0]);
      case 'stateIn': return stateIn(g.stateValue);
    }
    return g;
  }

  // action runs a list of actions in the words of definitions.
  action(actions) {
    return enqueueActions(({context, event, enqueue, self}, params) => {
      const scope = new Scope(this, structuredClone(context), event, params, (name) => isIn(self.getSnapshot(), name));
      this.run(actions, scope, enqueue);
    });
  }

  run(actions, scope, enqueue) {
    for (const a of list(actions)) {
      if (typeof a === 'string') this.run(this.config.actions[a], scope, enqueue);
      else if (a.assign) {
        for (const [path, v] of Object.entries(a.assign)) set(scope.context, path.split('.').slice(1), scope.value(v));
        enqueue.assign(structuredClone(scope.context));
      } else if (a.raise) {
        const {event, data} = typeof a.raise === 'string' ? {event: a.raise} : a.raise;
        enqueue.raise({...scope.value(data), type: event});
      } else if (a.send) {
        enqueue.raise({...scope.value(a.send.data), type: a.send.event}, {delay: duration(scope.value(a.send.delay ?? 0)), id: a.send.id});
      } else if (a.cancel) enqueue.cancel(scope.value(a.cancel));
      else if (a.if) {
        const branch = [a, ...list(a.elseif)].find((b) => scope.evaluate(b.if));
        this.run(branch ? branch.then : a.else, scope, enqueue);
      } else if (!a.log && !a.webhook && !a.mail && !a.redirect) throw new Error(`unknown action ${JSON.stringify(a)}`);
    }
  }

  // own turns XState's own actions, as JSON writes them, into the functions that they are.
  own(a) {
    if (typeof a === 'string' || this.config.actions?.[a.type]) return a;
    const p = {...a, ...a.params};
    switch (a.type.replace('@', '')) {
      case 'xstate.raise': return raise(typeof p.event === 'string' ? {type: p.event} : p.event, {delay: p.delay, id: p.id});
      case 'xstate.cancel': return cancel(p.sendId);
      case 'xstate.assign': return assign(a.params);
      case 'xstate.log': return log(p.value);
    }
    throw new Error(`unknown action ${a.type}`);
  }

  // config returns the configuration with functions where JSON has objects.
  state(s) {
    const out = {...s};
    for (const key of ['entry', 'exit']) if (s[key]) out[key] = list(s[key]).map((a) => this.own(a));
    for (const key of ['always', 'onDone']) if (s[key]) out[key] = this.transitions(s[key]);
    for (const key of ['on', 'after']) {
      if (s[key]) out[key] = Object.fromEntries(Object.entries(s[key]).map(([k, v]) => [k, this.transitions(v)]));
    }
    if (s.initial?.actions) out.initial = {...s.initial, actions: list(s.initial.actions).map((a) => this.own(a))};
    if (s.invoke) {
      out.invoke = list(s.invoke).map((i) => ({...i, ...(i.onDone && {onDone: this.transitions(i.onDone)}), ...(i.onError && {onError: this.transitions(i.onError)})}));
    }
    if (s.states) out.states = Object.fromEntries(Object.entries(s.states).map(([k, v]) => [k, this.state(v)]));
    return out;
  }

  transitions(v) {
    if (Array.isArray(v)) return v.map((t) => this.transitions(t));
    if (typeof v === 'string') return v;
    const out = {...v};
    if (v.guard) out.guard = this.combined(v.guard);
    if (v.actions) out.actions = list(v.actions).map((a) => this.own(a));
    return out;
  }
}

// isIn is the function In of definitions: "state" or "machine.state".
function isIn(snapshot, name) {
  return snapshot._nodes.some((n) => n.key === name || name === `${n.path[0]}.${n.key}` || name === `${snapshot.machine.config.meta?.troupe?.machine}.${n.key}`);
}

// reached is what a snapshot shows, without what is empty.
function reached(happened, snapshot) {
  if (snapshot.status === 'error') throw snapshot.error;
  const out = {...happened, value: snapshot.value, context: snapshot.context};
  if (snapshot.tags.size > 0) out.tags = [...snapshot.tags].sort();
  if (snapshot.status !== 'active') out.status = snapshot.status;
  if (snapshot.output !== undefined) out.output = snapshot.output;
  return out;
}

async function run(config, events) {
  const made = new Implementations(config);
  const clock = new Clock();
  const actor = createActor(createMachine(made.state(config), made.all()), {clock, logger: () => {}});
  actor.start();
  await settled();
  const lines = [reached({}, actor.getSnapshot())];
  for (const e of events) {
    if (e.send) actor.send({...e.data, type: e.send});
    else if (e.wait !== undefined) await clock.wait(e.wait);
    else if (e.done) made.latest.done(e.output);
    else if (e.fail) made.latest.fail(new Error(e.message));
    else throw new Error(`unknown event ${JSON.stringify(e)}`);
    await settled();
    lines.push(reached(e, actor.getSnapshot()));
  }
  return lines;
}

process.on('unhandledRejection', (e) => { throw e; });
const [, , folder, eventsFolder] = process.argv;
for (const file of readdirSync(eventsFolder).filter((f) => f.endsWith('.events.json')).sort()) {
  const name = file.slice(0, -'.events.json'.length);
  const read = (f) => JSON.parse(readFileSync(f, 'utf8'));
  try {
    const lines = await run(read(join(folder, `${name}.json`)), read(join(eventsFolder, file)));
    writeFileSync(join(folder, `${name}.reached.json`), `[\n${lines.map((l) => JSON.stringify(l)).join(',\n')}\n]\n`);
  } catch (e) {
    console.error(`${name}: ${e.stack}`);
    process.exitCode = 1;
  }
}
