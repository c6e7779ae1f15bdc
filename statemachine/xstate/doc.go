// Package xstate reads the JSON of XState v5 machines into definitions (Import), and writes definitions as such JSON
// (Export). JSON has no functions, so what guards, actions, delays and actors do is given by name in maps at its top, which
// XState does not look at; a name without an entry is a fault. What has no counterpart is a fault with its line and advice,
// and what does nothing in XState either is left out with a warning. MAPPING.md has the whole
// mapping, and what is different. Both functions are pure and safe for concurrent use.
package xstate
