// Package overload offers a server more than it can do, and shows what it still does. It
// starts the program on loopback with a temporary home and a fixed small
// share of the processors, and measures in each round what the server does in a closed
// loop. Then it offers 0.5, 1, 2, 5 and 10 times that in an open loop, ten times that
// of one hot instance, ten times the capacity from callers who do not heed Retry-After,
// normal load beside clients that repeat each refused request at once, and normal load
// beside idle connections.
//
// Beside every load a polite user sends a few events, and health and metrics are asked
// for. The record has what was offered and answered in useful time, how long a refusal
// took, the memory of the server, and how soon after the load everything was quick again.
//
// The server has a share, because the load generator needs the rest of the processors: on
// a machine that both use up, ten times the capacity cannot be offered. The share is a
// control group of Linux, for which this program must run as root; without it the record
// says that there was none.
package overload
