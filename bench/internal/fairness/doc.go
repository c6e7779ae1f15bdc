// Package fairness shows what one hostile user, or somebody without a credential,
// takes from a polite one. It starts the program anew for each attack, on loopback and a
// temporary home with a workflow of its own. The polite user sends a steady mix in
// an open loop; meanwhile the hostile one tries one thing after the other at every
// limit. The record has the polite user's latencies and errors of each kind beside
// those without an attack, and what the hostile one was answered.
//
// The polite user's requests come from 127.0.0.1, the hostile one's from 127.0.0.2,
// so that limits by address can be seen. Connections are opened to the server that
// was started, and to nothing else; their number and the time are bounded.
//
// Both clients share the processors with the server. So the hostile one pauses after
// each refusal, and comes over a link of 1 Gbit/s (-link): over loopback it would move
// gigabytes a second with the server's processors. With -bare it attacks a server that
// only refuses, in place of this one; what the polite user gets then is what the hostile
// client alone takes, and no server can do better.
package fairness
