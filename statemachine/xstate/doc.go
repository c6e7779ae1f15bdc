// Package xstate reads the JSON of XState v5 machines into definitions, and writes definitions as such JSON.
//
//	machine.json ── Import ──► YAML with semantics: xstate ── statemachine.Parser
//	definition   ── Export ──► machine.json, warnings      ── createMachine
//
// What is read is what JSON.stringify gives of the configuration of createMachine or setup().createMachine, or what
// Stately exports. JSON has no functions. So what guards, actions, delays and actors do is given by name in maps at the
// top of the JSON, which XState does not look at:
//
//	"guards":  {"isSmall": "svcPublic.amount < 100", "both": {"type": "and", "guards": ["isSmall", "isPaid"]}}
//	"actions": {"count": {"assign": {"svcPublic.n": "${svcPublic.n + 1}"}}, "track": []}
//	"delays":  {"timeout": 5000, "grace": "P2D", "due": "${svcPublic.due}"}
//	"actors":  {"load": {"workflow": "loader"}}
//
// Conditions and values are CEL, actions those of definitions; params are those of the reference. A name without an
// entry is a fault: a guard never becomes true and an action never nothing because its code is missing.
//
// # Import
//
//	XState                            definition
//	id                                id, with "-" for characters that it cannot have, and name; without one, that of the file
//	the root                          the state machine main; a root without states has the state active
//	a parallel root                   a state machine for each region, when nothing else is said of the root or of regions as a
//	                                  whole and no transition leads out of one; otherwise main, which is parallel
//	key of a state                    name of the node; one that repeats gets the keys around it in front ("bold-on"), and
//	                                  characters that a name cannot have become "_". A comment at the top of the YAML says so
//	id of a state, targets            the node's name
//	context                           context.svcPublic
//	event {type, …}                   event.name, and event.data with the rest; apply: none, so that it goes nowhere by itself
//	output of a done event            event.data; that of an actor event.data.output, the error's message event.data.message
//	on                                on, the exact names first, then the longest patterns, as XState tries them
//	names of events                   unchanged, since callers use them: blanks, and names that the machine itself raises here,
//	                                  are faults. "xstate.done.state.ID" becomes done.state.NODE
//	always, onDone, reenter, history  as they are, and so are actions of initial
//	after                             after, with named delays written out
//	guard                             a name of guards, or a condition: and, or, not and stateIn are put together; params are bound
//	actions, entry, exit              names of actions; those with params are written out
//	xstate.raise, with a delay        raise, send
//	xstate.assign, .cancel, .log      assign, cancel, log; their members stand beside the type or in params
//	invoke                            invoke of the workflow that actors gives; input is data.svcPublic
//	output of the root                output of its final states
//	tags, meta, description           as they are; the tag failed of a final state means something to a parent here
//	an unknown event                  unmatched: ignore
//
// A text that is wholly "${…}" is an expression in payloads of raised events and in outputs, too. What has no counterpart
// is a fault with its line and advice: functions, sendTo, sendParent, emit, spawnChild, a final state as a region, a root that is entered again though it has entry or exit actions, an eventless
// transition that changes nothing. What does nothing in XState either (types, meta of a transition) is left out with
// a warning.
//
// # What is different
//
// Machines do what they do in XState, by testdata/reach and .ci/xstate, with these exceptions. An event that no state
// takes by any name is an invalid request, not ignored. A guard or action that fails undoes the step; XState stops the
// machine. XState takes transitions of several regions in the order in which their states were entered; here it is that
// of the document. Where one region's transition stays in its own atomic state and another leaves that state, XState takes
// both; here the first. A transition to a history state that leads back to its own source enters it again in XState
// without having left it. A history state of a parallel state without a default confuses XState; here it is the default entry. XState does not run
// the initial actions of a region that is entered because another one is a target.
//
// # Export
//
// State machines become the root, or the regions of a parallel root. Conditions and actions get names that say what they
// are, and stand in the maps. svcPublic is the context; constant delays are milliseconds. Everything else, from rights to
// schedules, is kept: under meta.troupe of the root, of a state or of a transition, where Import finds it again. Then the
// definition that Import makes has the semantics, events and names of the one that was exported, and does the same. A
// warning names what is kept in that way, and where XState does something else with a definition of our own semantics.
//
// Both functions are pure and safe for concurrent use. They are bounded as package document bounds a file.
package xstate
